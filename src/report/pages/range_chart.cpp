#include "report/pages/range_chart.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "draw/numbers.h"

namespace fp8kv {
namespace {

std::string magnitude_tick(double value) {
  return short_number(value);
}

Series limit_line(std::string name, SeriesKind kind, int style, const std::vector<double>& scales,
                  double limit) {
  Series line{std::move(name), kind, style, {}, {}, {}};
  for (const double scale : scales) {
    line.values.push_back((kind == SeriesKind::outside ? 1 : scale) * limit);
  }
  return line;
}

void add_limits(Chart& chart, const RangeLimits& of) {
  const double max = of.spec.max, min = of.spec.min_subnormal;
  const bool unit =
      std::all_of(of.scales.begin(), of.scales.end(), [](double s) { return s == 1; });
  const std::string pair =
      cat(short_number(max, 6), " and 2", superscript(std::ilogb(of.spec.min_subnormal)));
  if (!unit) {
    chart.series.push_back(limit_line(cat(pair, " times the scale: ", of.whose), SeriesKind::limit,
                                      of.style, of.scales, max));
    chart.series.push_back(limit_line("", SeriesKind::limit, of.style, of.scales, min));
  }
  chart.series.push_back(
      limit_line(cat(pair, ", the limits at scale 1"), SeriesKind::outside, 0, of.scales, max));
  chart.series.push_back(limit_line("", SeriesKind::outside, 0, of.scales, min));
}

}  // namespace

Chart range_chart(const LayerRanges& ranges, const std::optional<RangeLimits>& limits) {
  const std::string name = tensor_letter(ranges.tensor);
  Chart chart{.id = cat("range-", name),
              .title = cat("Magnitude of ", name, " by layer"),
              .caption =
                  "What is above the upper line saturates; what is below half the lower one "
                  "becomes zero.",
              .x_label = "layer",
              .y_label = cat("|", name, "|, logarithmic"),
              .places = ranges.layers,
              .log = true,
              .tick = magnitude_tick,
              .series = {}};
  Series largest{cat("largest |", name, "|"), SeriesKind::line, 0, ranges.largest, {}, {}};
  Series median{cat("median |", name, "|"), SeriesKind::marks, 4, ranges.median, {}, {}};
  largest.neutral = median.neutral = true;
  for (size_t i = 0; i < ranges.largest.size(); ++i) {
    largest.tips.push_back(
        cat("layer ", ranges.layers[i], ": largest ", short_number(ranges.largest[i], 5)));
  }
  for (size_t i = 0; i < ranges.median.size(); ++i) {
    median.tips.push_back(
        cat("layer ", ranges.layers[i], ": median ", short_number(ranges.median[i])));
  }
  if (limits) add_limits(chart, *limits);
  chart.series.push_back(std::move(largest));
  if (!median.values.empty()) chart.series.push_back(std::move(median));
  return chart;
}

std::vector<std::string> layer_names(const std::vector<size_t>& layers) {
  std::vector<std::string> names;
  for (const size_t layer : layers) names.push_back(cat(layer));
  return names;
}

const char* tensor_letter(CacheTensor tensor) {
  return tensor == CacheTensor::k ? "K" : "V";
}

}  // namespace fp8kv
