#include <string>

#include <doctest/doctest.h>

#include "json/json.h"
#include "show/eval/eval_json.h"
#include "show/eval/eval_tables.h"
#include "support/sample_report.h"

namespace fp8kv {
namespace {

TEST_CASE("eval tables: percentages are in plain notation as far as a reader can take it in") {
  test::SampleShape shape;
  shape.candidates = 1;
  EvalReport report = test::sample_report(shape);
  TokenFigures& total = report.candidates[0].total;
  const auto shown = [&](double delta, double error) {
    total.ppl_delta = delta;
    total.ppl_delta_error = error;
    const std::string text = eval_tables(report);
    const size_t end = text.find("By depth");
    const size_t at = text.rfind("% ± ", end);
    REQUIRE(at != text.npos);
    const size_t begin = text.rfind(' ', at) + 1;
    return text.substr(begin, text.find('%', at + 1) + 1 - begin);
  };
  CHECK(shown(32.54, 1.26) == "+3250% ± 130%");
  CHECK(shown(-0.0123, 0.00042) == "-1.23% ± 0.042%");
  CHECK(shown(123456789, 0.5) == "+12300000000% ± 50%");
  CHECK(shown(1e10, 0.5) == "+1e+12% ± 50%");
}

// The numbers that the rows of a table begin with; rows of V have none.
std::string layers_in(const std::string& text, const std::string& heading) {
  size_t at = text.find(heading);
  REQUIRE(at != text.npos);
  at = text.find('\n', text.find("layer", at + heading.size()));
  std::string layers;
  for (size_t end; (end = text.find('\n', at + 1)) != text.npos && end > at + 1; at = end) {
    const std::string row = text.substr(at + 1, end - at - 1);
    layers += row.substr(0, row.find_first_of("0123456789") + 1);
  }
  return layers;
}

TEST_CASE("eval tables: layers without a cache have no row, as nothing is measured there") {
  const std::string text = eval_tables(test::sample_hybrid());
  CHECK(layers_in(text, "Relative error of the attention output") == "    1    3");
  for (const char* heading : {"fp8_e4m3 amax: what the cache does to K and V",
                              "Largest magnitude after so many tokens"}) {
    CHECK(layers_in(text, heading) == "    1    1    3    3");
  }
  const Json layers =
      Json::parse(eval_json(test::sample_hybrid(), {}), "eval").at("candidates")[0].at("layers");
  REQUIRE(layers.size() == 4);
  CHECK(layers[2].brief() == R"({"layer": 2, "k_scale": [], "v_scale": []})");
  CHECK(layers[3].at("attention_error").as_double() > 0);
  CHECK(layers[3].at("k").at("values").as_int() == 10000);
}

}  // namespace
}  // namespace fp8kv
