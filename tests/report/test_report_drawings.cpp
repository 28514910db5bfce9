// The drawings of a sample evaluation's page: the places and colours of values. The test works out
// the places from the ticks that a reader sees.
#include <cmath>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "report/pages/html_report.h"
#include "support/markup.h"
#include "support/sample_report.h"

namespace fp8kv {
namespace {

using test::plain_report;
using test::Tag;

std::vector<Tag> drawing(const EvalReport& report, const std::string& id) {
  std::vector<Tag> tags = test::drawing_of(html_report(report), id);
  REQUIRE_FALSE(tags.empty());
  return tags;
}

double number(const Tag& tag, const char* attribute) {
  return std::stod(tag.attributes.at(attribute));
}

bool has_class(const Tag& tag, const char* name) {
  const auto of = tag.attributes.find("class");
  return of != tag.attributes.end() && of->second == name;
}

// Maps a value to its place on the y axis, from two ticks. Labels end 8 left of the plot, and 4
// below their line.
std::function<double(double)> y_of(const std::vector<Tag>& tags, bool log) {
  std::vector<std::pair<double, double>> ticks;
  for (const Tag& tag : tags) {
    if (tag.name != "text" || tag.is_end || tag.attributes.at("text-anchor") != "end") continue;
    if (tag.text.find("10⁻") != tag.text.npos) continue;  // plain numbers suffice
    ticks.emplace_back(std::stod(tag.text), number(tag, "y") - 4);
  }
  REQUIRE(ticks.size() >= 2);
  const auto [low, low_y] = ticks.front();
  const auto [high, high_y] = ticks.back();
  const auto at = [log](double value) { return log ? std::log10(value) : value; };
  return [=](double value) {
    return low_y + (at(value) - at(low)) / (at(high) - at(low)) * (high_y - low_y);
  };
}

// Two coordinates are rounded to hundredths, and ticks have the same error.
constexpr double kRounding = 0.03;

std::vector<Tag> of_kind(const std::vector<Tag>& tags, const char* name, const char* css_class) {
  std::vector<Tag> found;
  for (const Tag& tag : tags) {
    if (tag.name == name && !tag.is_end && has_class(tag, css_class)) found.push_back(tag);
  }
  return found;
}

TEST_CASE("report: largest magnitudes and limits of the format stand at their values") {
  const std::vector<Tag> tags = drawing(plain_report(), "range-K");
  const auto y = y_of(tags, true);
  std::vector<Tag> labels;
  for (const Tag& tag : tags) {
    if (tag.name == "text" && !tag.is_end && tag.attributes.at("text-anchor") == "middle") {
      labels.push_back(tag);
    }
  }
  REQUIRE(labels.size() == 6 + 1);
  const std::vector<Tag> marks = of_kind(tags, "circle", "mark");
  REQUIRE(marks.size() == 6);
  for (size_t i = 0; i < 6; ++i) {
    const double amax = 1000.0 / static_cast<double>(1 + i * i);
    CHECK(std::abs(number(marks[i], "cy") - y(amax)) < kRounding);
    CHECK(number(marks[i], "cx") == number(labels[i], "x"));
    CHECK(labels[i].text == cat(i));
  }
  // The first path is 448 times the scale, which here equals amax: M left y H right L left y ...
  const std::vector<Tag> paths = of_kind(tags, "path", "path");
  REQUIRE(paths.size() == 4 + 1);
  const std::string upper = paths[0].attributes.at("d");
  const double first = std::stod(upper.substr(upper.find(' ') + 1));
  CHECK(std::abs(first - y(1000)) < kRounding);
  const std::string unit = paths[2].attributes.at("d");
  const double at_448 = std::stod(unit.substr(unit.find(' ') + 1));
  CHECK(std::abs(at_448 - y(448)) < kRounding);
  const std::string least = paths[3].attributes.at("d");
  const double at_least = std::stod(least.substr(least.find(' ') + 1));
  CHECK(std::abs(at_least - y(std::exp2(-9))) < kRounding);
}

TEST_CASE("report: changes of perplexity have error bars, and hopeless ones leave the plot") {
  const EvalReport report = plain_report();
  const std::vector<Tag> tags = drawing(report, "depth-perplexity");
  const auto y = y_of(tags, false);  // in per cent
  const std::vector<Tag> bars = of_kind(tags, "line", "err");
  REQUIRE(bars.size() == 2 * 3);
  for (size_t c = 0; c < 2; ++c) {
    for (size_t d = 0; d < 3; ++d) {
      const TokenFigures& of = report.candidates[2 * c].depths[d];
      const Tag& bar = bars[c * 3 + d];
      CHECK(std::abs(number(bar, "y1") - y(100 * (of.ppl_delta - of.ppl_delta_error))) < kRounding);
      CHECK(std::abs(number(bar, "y2") - y(100 * (of.ppl_delta + of.ppl_delta_error))) < kRounding);
    }
  }
  // Scales of 1 change perplexity by more than 100 %, others by less than 5 %.
  const std::vector<Tag> beyond = of_kind(tags, "polygon", "out");
  CHECK(beyond.size() == 3);
  CHECK(html_report(report).find("Hollow marks at the upper edge are far beyond it.") !=
        std::string::npos);
}

TEST_CASE("report: bars of the cache are as long as its bytes") {
  const std::vector<Tag> bars = of_kind(drawing(plain_report(), "capacity"), "rect", "bar");
  REQUIRE(bars.size() == 2);  // float16 and fp8_e4m3, for any number of policies
  CHECK(number(bars[0], "width") == 2 * number(bars[1], "width"));
  CHECK(number(bars[0], "x") == number(bars[1], "x"));
}

TEST_CASE("report: colours of heads rise with their values, and a dead head is grey") {
  EvalReport report = plain_report();
  for (size_t i = 0; i < 6; ++i) {
    report.magnitudes[i] = test::sample_magnitudes(std::ldexp(1.0f, static_cast<int>(i)), 1, 2);
  }
  report.magnitudes[5].k[1].amax = 0;
  const std::vector<Tag> cells = of_kind(drawing(report, "heads-K"), "rect", "cell");
  REQUIRE(cells.size() == 12);
  const auto light = [](const Tag& cell) {
    const auto rgb = std::stoul(cell.attributes.at("fill").substr(1), nullptr, 16);
    return (rgb >> 16) + (rgb >> 8 & 255) + (rgb & 255);
  };
  for (size_t i = 1; i < 6; ++i) CHECK(light(cells[i]) > light(cells[i - 1]));
  CHECK(cells[11].attributes.at("fill") == "#808080");
}

// Classes of the elements in these tags, such as lines of a legend.
std::vector<std::string> series_classes(const std::vector<Tag>& tags) {
  std::vector<std::string> found;
  for (const Tag& tag : tags) {
    const auto of = tag.attributes.find("class");
    if (tag.name == "g" && !tag.is_end && of != tag.attributes.end()) found.push_back(of->second);
  }
  return found;
}

TEST_CASE("report: a candidate has one colour in the table and in every chart, and its own") {
  EvalReport report = test::sample_report({.candidates = 8, .name = ""});
  report.candidates[5].total.kld = 1e-6;  // makes it the nearest
  for (PartSums& part : report.candidates[5].parts) part.kld = 1e-6 * double(part.tokens);
  const std::vector<std::string> all = {"s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"};
  for (const char* chart :
       {"error-attention", "error-K", "error-V", "depth-perplexity", "depth-divergence"}) {
    CAPTURE(chart);
    CHECK(series_classes(drawing(report, chart)) == all);
  }
  // The cache's limits, twice; the limits of 1, twice; the measured values in black.
  CHECK(series_classes(drawing(report, "range-K")) ==
        std::vector<std::string>{"s5", "s5", "soft", "soft", "ink", "ink"});
  std::vector<std::string> of_table;
  bool sign = false;
  for (const Tag& tag : test::tags_of(html_report(report))) {
    if (tag.name == "svg" && sign) of_table.push_back(tag.attributes.at("class"));
    sign = tag.name == "span" && !tag.is_end && has_class(tag, "sign");
  }
  CHECK(of_table == all);
}

}  // namespace
}  // namespace fp8kv
