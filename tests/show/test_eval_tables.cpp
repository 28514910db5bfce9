#include <string>

#include <doctest/doctest.h>

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

}  // namespace
}  // namespace fp8kv
