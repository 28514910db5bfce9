#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "report/text_plot.h"
#include "support/sample_report.h"

namespace fp8kv {
namespace {

// The widths of the lines, in characters.
std::vector<size_t> widths(const std::string& text) {
  std::vector<size_t> found = {0};
  for (const char c : text) {
    if (c == '\n') {
      found.push_back(0);
    } else if ((c & 0xC0) != 0x80) {
      ++found.back();
    }
  }
  return found;
}

TEST_CASE("text plot: ranges, limits and errors of two layers") {
  const EvalReport report = test::sample_report({.candidates = 2, .name = ""});
  // Places of the marks in 48 columns. The bar for K of layer 0 ends at 47.9. Its limits are at 2.9
  // and 47.9 with the scale, and at 0 and 44.99 without.
  CHECK(text_plot(report, 64) ==
        "Largest |K| of each layer, from 2^-9 to 2^10 in equal octaves\n"
        "   0  1000      ┊█│█████████████████████████████████████████┊██│\n"
        "   1  500       │███████████████████████████████████████████┊│\n"
        "\n"
        "Largest |V| of each layer, from 2^-25 to 2^9 in equal octaves\n"
        "   0  0.01      │█████████████████████┊██│                     ┊\n"
        "   1  0.02      ██│███████████████████┊████│                   ┊\n"
        "│ 448 and 2^-9 times the scale\n"
        "  of fp8_e4m3 amax\n"
        "┊ 448 and 2^-9 at scale 1\n"
        "\n"
        "Relative error of the attention output, to 8.2 %\n"
        "   0  fp8_e4m3 amax       6 % ████████████████████████▉\n"
        "      fp8_e4m3 unit       8 % █████████████████████████████████▏\n"
        "   1  fp8_e4m3 amax     6.2 % █████████████████████████▊\n"
        "      fp8_e4m3 unit     8.2 % ██████████████████████████████████\n");
}

// Limits of layer 0 in 48 columns. K: 2.5 and 47.5 with its scale of 2, 0 and 44.99 without. V: 0
// and 30.5 with its scale, 17.1 and 47.7 without. Layer 1 writes no cache.
TEST_CASE("text plot: the ranges of scales, and a layer without a cache") {
  KvScales scales;
  scales.layers = {{{2}, {0x1p-10F}}, {}};
  scales.provenance.amax = {{{896}, {0.4375F}, {1}}, {}};
  CHECK(text_plot(scales, 64) ==
        "Largest |K| of each layer, from 2^-9 to 2^10 in equal octaves\n"
        "   0  896       ┊█│█████████████████████████████████████████┊██│\n"
        "   1  -\n"
        "\n"
        "Largest |V| of each layer, from 2^-19 to 2^9 in equal octaves\n"
        "   0  0.4375    │████████████████┊████████████│                ┊\n"
        "   1  -\n"
        "│ 448 and 2^-9 times the scale\n"
        "┊ 448 and 2^-9 at scale 1\n");
}

TEST_CASE("text plot: layers of an evaluation without a cache have neither range nor error") {
  const std::string plot = text_plot(test::sample_hybrid(), 64);
  size_t without = 0;
  for (size_t at = 0; (at = plot.find("  -\n", at)) != plot.npos; ++at) ++without;
  CHECK(without == 3 * 2);
  CHECK(plot.find("\n   0  -\n   1  500 ") != plot.npos);
  CHECK(plot.find("\n   2  -\n   3  fp8_e4m3 amax") != plot.npos);
}

TEST_CASE("text plot: no line is wider than asked for, and nothing acts on the terminal") {
  for (const auto& [name, report] : test::sample_reports()) {
    for (const int width : {-1, 0, 64, 80, 200}) {
      CAPTURE(name);
      CAPTURE(width);
      const std::string plot = text_plot(report, width);
      for (const size_t columns : widths(plot)) {
        CHECK(columns <= static_cast<size_t>(width < 64 ? 64 : width));
      }
      CHECK(plot.find('\x1b') == std::string::npos);
      CHECK(plot.find('\x01') == std::string::npos);
      CHECK(plot.find("\xe2\x80\xae") == std::string::npos);
    }
  }
}

}  // namespace
}  // namespace fp8kv
