#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "json/json.h"
#include "show/eval/eval_json.h"
#include "show/eval/eval_summary.h"
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
    const std::string text = eval_summary(report);
    const size_t end = text.find("layers");
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

TEST_CASE("eval summary: figures, layers, verdict and commands") {
  EvalReport report = test::sample_report({.layers = 6, .name = ""});
  report.candidates[0].layers[2].attention_error = 0.3;
  report.candidates[1].layers[2].attention_error = 0.31;
  report.candidates[2].layers[2].attention_error = 0.32;
  CHECK(
      eval_summary(report) ==
      R"(cache                   perplexity          delta              KLD  KLD 99.9%   top-1       greedy text  B/token
float16 (baseline)  4.48617 ± 0.09              -                -          -       -                 -    2,048
fp8_e4m3 amax       4.48617 ± 0.09  +0.1% ± 0.04%  0.001 ± 0.00013       0.02  99.90%  1 of 2, token 13    1,024
fp8_e4m3 unit       9.97418 ± 0.09  +123% ± 0.04%        0.8 ± 0.1         16  20.00%   1 of 2, token 1    1,024
fp8_e4m3 amax*2     4.49515 ± 0.09  +0.3% ± 0.04%  0.003 ± 0.00038       0.06  99.70%  1 of 2, token 13    1,024

layers    ▂▂█▂▂▂
          error of the attention output, fp8_e4m3 amax: 30% in layer 2, 7% in layer 5 and 6.8% in layer 4
verdict   The FP8 cache holds: fp8_e4m3 amax changes perplexity by +0.1 % ± 0.04 % against float16.
          fp8_e4m3 amax has the least KL divergence of 2 FP8 caches, beyond two standard errors: 0.001 ± 0.00013 nats.
          Scales of 1, a control, lose 0.799 more nats a token.
          The same memory holds 2 times the tokens.
          By range alone, every layer needs its scale.
          But layer 2 loses 30 % of the attention output in every FP8 cache measured. Measure it in 16 bit: eval --kv-cache-dtype-skip-layers 2.
          Measured on 8,192 tokens in 4 windows.
next      The scales of fp8_e4m3 amax go into a copy of the model, and vLLM serves the copy.
  fp8kv calibrate models/sample --data TEXT -o scales.json
  fp8kv inject models/sample --scales scales.json -o sample-fp8
  vllm serve sample-fp8 --kv-cache-dtype fp8
)");
}

TEST_CASE("eval summary: at most twenty lines of some caches, whatever the model") {
  for (const int64_t layers : {1, 30, 128}) {
    const EvalReport report = test::sample_report({.layers = layers, .name = ""});
    const std::string text = eval_summary(report);
    CHECK(std::count(text.begin(), text.end(), '\n') <= 20);
  }
}

// The layer numbers that start the table's rows. Rows of V have none.
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
