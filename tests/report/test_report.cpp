// The page of a sample evaluation: its parts, verdicts, commands and tables.
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "draw/numbers.h"
#include "report/pages/html_report.h"
#include "report/verdict.h"
#include "support/markup.h"
#include "support/sample_report.h"

namespace fp8kv {
namespace {

using test::plain_report;
using test::Tag;

TEST_CASE("report: layers without a cache stand in no figure and no table") {
  const std::string page = html_report(test::sample_hybrid());
  for (const char* layer : {"layer 0", "layer 2"}) CHECK(page.find(layer) == page.npos);
  for (const char* layer : {"layer 1", "layer 3"}) CHECK(page.find(layer) != page.npos);
}

TEST_CASE("report: the page has these parts, in this order") {
  std::string parts;
  for (const Tag& tag : test::tags_of(html_report(plain_report()))) {
    if (tag.is_end) continue;
    if (tag.name == "h1" || tag.name == "h2" || tag.name == "summary") parts += tag.text + "\n";
    if (tag.name == "title" && tag.attributes.contains("id")) parts += "  " + tag.text + "\n";
  }
  CHECK(parts ==
        "sample\n"
        "The caches compared\n"
        "How to serve it\n"
        "Scales of each layer\n"
        "Do the values fit the format?\n"
        "  Magnitude of K by layer\n"
        "  Magnitude of V by layer\n"
        "Are the scales safe?\n"
        "Margins of each layer\n"
        "Did the calibration see enough?\n"
        "  Largest magnitude by tokens calibrated on\n"
        "Ranges of each layer\n"
        "What each layer loses\n"
        "  Relative error of the attention output by layer\n"
        "  Relative error of K by layer\n"
        "  Relative error of V by layer\n"
        "What the text loses, by depth\n"
        "  Change of perplexity by depth\n"
        "  Mean KL divergence by depth\n"
        "Which heads are large?\n"
        "  Largest |K| of each KV head and layer\n"
        "  Largest |V| of each KV head and layer\n"
        "What the memory gains\n"
        "  Bytes of a token in the cache\n"
        "Where these numbers come from\n"
        "Every number\n"
        "Errors of each layer and tensor\n");
}

TEST_CASE("report: greedy texts that part stand side by side, marked and escaped") {
  EvalReport report = plain_report();
  CHECK(html_report(report).find("id=\"texts\"") == std::string::npos);
  report.texts = {{"Once <b>", "a small cat sat", "a small dog ran", 3}};
  const std::string html = html_report(report);
  CHECK(html.find("Where its texts part") != std::string::npos);
  CHECK(html.find("fp8_e4m3 amax writes the baseline&#39;s text after 1 of 2 prompts.") !=
        std::string::npos);
  CHECK(html.find("<p class=\"note\">prompt: Once &lt;b&gt;</p>") != std::string::npos);
  CHECK(html.find("<pre><span class=\"common\">a small </span><mark>cat</mark> sat</pre>") !=
        std::string::npos);
  CHECK(html.find("<pre><span class=\"common\">a small </span><mark>dog</mark> ran</pre>") !=
        std::string::npos);
}

TEST_CASE("report: the headline is sure, unsure or negative as the numbers are") {
  EvalReport report = test::sample_report({.candidates = 1, .name = ""});
  const auto headline = [&](double delta, double error) {
    report.candidates[0].total.ppl_delta = delta;
    report.candidates[0].total.ppl_delta_error = error;
    return verdict_text(report).lines[0];
  };
  CHECK(headline(0.001, 0.0004) ==
        "The FP8 cache holds: fp8_e4m3 amax changes perplexity by +0.1 % ± 0.04 % against "
        "float16.");
  CHECK(headline(0.004, 0.001) ==
        "Not decided yet: fp8_e4m3 amax changes perplexity by +0.4 % ± 0.1 % against float16, and "
        "0.5 % lies within two standard errors. More text decides.");
  CHECK(headline(0.006, 0.001).starts_with("Not decided yet: "));
  CHECK(headline(-0.003, 0.005).starts_with("Not decided yet: "));
  CHECK(headline(0.006, 0.0001) ==
        "No FP8 cache measured here stays within 0.5 %: the nearest, fp8_e4m3 amax changes "
        "perplexity by +0.6 % ± 0.01 % against float16.");
  CHECK(headline(std::nan(""), 0) == "No FP8 cache works: the logits are not finite.");
}

TEST_CASE("report: a cache that the default checks fail is broken, whatever its perplexity") {
  EvalReport report = test::sample_report({.candidates = 1, .name = ""});
  TokenFigures& total = report.candidates[0].total;
  total.ppl_delta = -0.0069;
  total.ppl_delta_error = 0.01;
  total.kld = 0.53;
  total.top1 = 0.46;
  CHECK(loss_name(loss_of(report.candidates[0])) == "broken");
  CHECK(verdict_text(report).lines[0] ==
        "No FP8 cache measured here works: of the nearest, fp8_e4m3 amax, kld is 0.53 (kld > 0.15) "
        "and top1 is 0.46 (top1 < 75%).");
  total.tokens = 99;
  CHECK(loss_name(loss_of(report.candidates[0])) == "too little text");
  CHECK(verdict_text(report).lines[0].starts_with(
      "Too little text for a verdict: tokens is 99 (tokens < 100)"));
}

// Class and words of each verdict cell of the page, in order.
std::vector<std::pair<std::string, std::string>> verdicts(const EvalReport& report) {
  std::vector<std::pair<std::string, std::string>> found;
  for (const Tag& tag : test::tags_of(html_report(report))) {
    const auto of = tag.attributes.find("class");
    if (tag.name != "span" || tag.is_end || of == tag.attributes.end()) continue;
    if (of->second.starts_with("badge")) found.emplace_back(of->second, tag.text);
  }
  return found;
}

TEST_CASE("report: every candidate has its verdict in words and colour") {
  EvalReport report = test::sample_report({.candidates = 6, .name = ""});
  const std::vector<double> deltas = {0.001, 0.004, 0.006, 0.002, 0.001, 0.001};
  for (size_t i = 0; i < deltas.size(); ++i) {
    TokenFigures& total = report.candidates[i].total;
    total.ppl_delta = deltas[i];
    total.ppl_delta_error = i == 1 ? 0.001 : 0.0001;
    total.kld = i == 3 ? 0.53 : 0.01;
    total.top1 = 0.99;
    total.tokens = i == 4 ? 99 : 1000;
  }
  report.candidates[5].dtype = DType::f8_e5m2;
  using Expected = std::vector<std::pair<std::string, std::string>>;
  CHECK(verdicts(report) == Expected{{"badge good", "within 0.5 %"},
                                     {"badge unsure", "unclear"},
                                     {"badge bad", "beyond 0.5 %"},
                                     {"badge bad", "broken"},
                                     {"badge unsure", "too little text"},
                                     {"badge good", "within 0.5 %"}});
}

std::string text_of(const EvalReport& report, const char* element) {
  std::string text;
  for (const Tag& tag : test::tags_of(html_report(report))) {
    if (tag.name == element && !tag.is_end) text += tag.text;
  }
  return text;
}

TEST_CASE("report: the command to serve is that of the headline's cache") {
  EvalReport report = plain_report();
  CHECK(html_report(report).find(
            "<pre><code>fp8kv calibrate models/sample --data TEXT -o scales.json</code>\n"
            "<code>fp8kv inject models/sample --scales scales.json -o sample-fp8</code>\n"
            "<code>vllm serve sample-fp8 --kv-cache-dtype fp8</code>") != std::string::npos);
  for (LayerScales& layer : report.candidates[0].scales->layers) layer = {{0.5f, 0.5f}, {1, 1}};
  // The folder for all runtimes has one scale per layer, so per-head scales need --for vllm.
  CHECK(text_of(report, "code").find("-o sample-fp8 --for vllm") != std::string::npos);
  report.candidates[0].scales.reset();
  CHECK(text_of(report, "code") == "vllm serve models/sample --kv-cache-dtype fp8");
  CHECK(html_report(report).find("Scales of each layer") == std::string::npos);
  report.candidates[0].dtype = DType::f8_e5m2;
  CHECK(text_of(report, "code") == "vllm serve models/sample --kv-cache-dtype fp8_e5m2");
  report.candidates[0].total.top1 = 0.46;
  CHECK(text_of(report, "code") == "");
  CHECK(html_report(report).find("There is no command to give: fp8_e4m3 amax is broken") !=
        std::string::npos);
}

TEST_CASE("report: the scales of the headline's cache, of heads as a range") {
  EvalReport report = test::sample_report({.layers = 3, .name = ""});
  report.candidates[0].scales->layers = {{{0.25f}, {1.5f}}, {{0.5f, 0.125f}, {2, 2}}, {}};
  const std::string html = html_report(report);
  const auto cell = [](const char* order, const char* text) {
    return cat("<td data-order=\"", order, "\">", text, "</td>");
  };
  CHECK(html.find(cat("<tr><td class=\"n\">0</td>", cell("0.25", "0.25"), cell("1.5", "1.5"),
                      "<td>–</td></tr>")) != html.npos);
  CHECK(html.find(cat("<tr><td class=\"n\">1</td>", cell("0.5", "0.125 – 0.5"), cell("2", "2"),
                      "<td>2</td></tr>")) != html.npos);
  CHECK(html.find(cat("<tr><td class=\"n\">2</td>", cell("NaN", "–"), cell("NaN", "–"),
                      "<td>–</td></tr>")) != html.npos);
}

TEST_CASE("report: the page bears its day and the version") {
  EvalReport report = plain_report();
  report.date = "2024-02-29";
  CHECK(html_report(report).find("<p class=\"note\">2024-02-29, fp8kv 1.2.3</p>") !=
        std::string::npos);
  CHECK(html_report(report) == html_report(report));
}

TEST_CASE("report: layers to be kept in 16 bit come with vLLM's flag") {
  EvalReport report = plain_report();
  CHECK(html_report(report).find("--kv-cache-dtype-skip-layers") == std::string::npos);
  // Half of the values in layer 3 are 30 octaves below the largest. No scale covers both.
  MagnitudeCounts& k = report.magnitudes[3].k[0];
  k.amax = 100;
  k.bins[static_cast<size_t>(magnitude_bin(float_bits(100e-9f)))] += 100000;
  CHECK(html_report(report).find("vLLM keeps them in 16 bit with "
                                 "<code>--kv-cache-dtype-skip-layers 3</code>.") !=
        std::string::npos);
  CHECK(html_report(report).find(" --kv-cache-dtype fp8 --kv-cache-dtype-skip-layers 3</code>") !=
        std::string::npos);
}

TEST_CASE("report: a layer without a cache has rows that say so, and no verdict") {
  EvalReport report = plain_report();
  report.magnitudes[3] = {};
  for (CandidateReport& each : report.candidates) {
    if (each.scales) each.scales->layers[3] = {};
  }
  REQUIRE(report.calibration);
  for (AmaxAfter& part : report.calibration->convergence) part.layers[3] = {};
  CHECK(certificate_of(report)->layers_with(Verdict::no_cache) == std::vector<size_t>{3});
  size_t rows = 0;
  for (const Tag& tag : test::tags_of(html_report(report))) rows += tag.text == "no cache";
  CHECK(rows == 2);  // one in the table of margins, one in the table of ranges
}

TEST_CASE("numbers: short, rounded once, with powers of ten beyond six digits") {
  const std::vector<std::pair<double, std::string>> cases = {
      {0, "0"},           {1, "1"},
      {-1.5, "-1.5"},     {0.000338, "0.000338"},
      {23.886, "23.9"},   {999.6, "1000"},
      {5020, "5020"},     {123456, "123000"},
      {1e6, "10⁶"},       {4.73e-6, "4.73×10⁻⁶"},
      {-1e-12, "-10⁻¹²"}, {1e300, "10³⁰⁰"},
      {INFINITY, "∞"},    {-INFINITY, "-∞"},
      {NAN, "NaN"}};
  for (const auto& [value, text] : cases) CHECK(short_number(value) == text);
  CHECK(short_number(0.099951, 3) == "0.1");
  CHECK(short_number(5036.2, 5) == "5036.2");
  CHECK(signed_percent(-0.00123, 0.0004) == "-0.123 % ± 0.04 %");
  CHECK(superscript(-120) == "⁻¹²⁰");
}

}  // namespace
}  // namespace fp8kv
