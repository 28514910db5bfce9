#include "report/pages/figures.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "draw/bar_chart.h"
#include "draw/chart.h"
#include "draw/heat_map.h"
#include "draw/numbers.h"
#include "report/advice.h"
#include "report/verdict.h"

namespace fp8kv {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

std::string number_tick(double value) {
  return short_number(value);
}

std::string percent_tick(double value) {
  return short_percent(value);
}

std::vector<MagnitudeCounts> LayerMagnitudes::*magnitudes_of(CacheTensor tensor) {
  return tensor == CacheTensor::k ? &LayerMagnitudes::k : &LayerMagnitudes::v;
}

std::vector<float> LayerScales::*scales_of(CacheTensor tensor) {
  return tensor == CacheTensor::k ? &LayerScales::k : &LayerScales::v;
}

// The floor of the median's bin, over values that are not below every bin; 0 if there are none.
double median_of(const std::vector<MagnitudeCounts>& heads) {
  std::vector<uint64_t> bins(kMagnitudeBins);
  uint64_t total = 0;
  for (const MagnitudeCounts& head : heads) {
    for (size_t i = 1; i < std::min(head.bins.size(), bins.size()); ++i) {
      bins[i] += head.bins[i];
      total += head.bins[i];
    }
  }
  uint64_t seen = 0;
  for (size_t i = 1; i < bins.size() && total > 0; ++i) {
    seen += bins[i];
    if (2 * seen >= total) return double{magnitude_bin_floor(static_cast<int>(i))};
  }
  return 0;
}

// A candidate has the same colour in every chart, given by its place in the report.
int style_of(const EvalReport& report, const CandidateReport& candidate) {
  return static_cast<int>(&candidate - report.candidates.data());
}

// The numbers of the layers with a cache of their own.
template <typename Layer>
std::vector<size_t> cached_layers(const std::vector<Layer>& layers) {
  std::vector<size_t> cached;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].has_cache()) cached.push_back(i);
  }
  return cached;
}

// REQUIRES candidates with equally many layers.
Chart error_chart(const EvalReport& report, double (*error)(const LayerErrors&)) {
  const std::vector<size_t> layers = cached_layers(report.candidates[0].layers);
  Chart chart;
  chart.x_label = "layer";
  chart.y_label = "relative error";
  chart.places = layer_names(layers);
  chart.log = true;
  chart.tick = percent_tick;
  for (size_t c = 0; c < report.candidates.size(); ++c) {
    const CandidateReport& each = report.candidates[c];
    Series series{each.name, SeriesKind::line, static_cast<int>(c), {}, {}, {}};
    for (const size_t layer : layers) {
      series.values.push_back(error(each.layers[layer]));
      series.tips.push_back(
          cat("layer ", layer, ", ", each.name, ": ", short_percent(series.values.back())));
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

// REQUIRES layers with a cache.
Chart range_chart_of(const EvalReport& report, CacheTensor tensor) {
  const std::vector<size_t> layers = cached_layers(report.magnitudes);
  LayerRanges ranges{tensor, layer_names(layers), {}, {}};
  const auto amax = layer_amax_of(report.magnitudes, magnitudes_of(tensor));
  for (const size_t layer : layers) {
    ranges.largest.push_back(amax[layer]);
    ranges.median.push_back(median_of(report.magnitudes[layer].*magnitudes_of(tensor)));
  }
  std::optional<RangeLimits> limits;
  if (const CandidateReport* best = advised_fp8(report)) {
    limits = {fp8_spec(*fp8_format(best->dtype)), {}, best->name, style_of(report, *best)};
    const auto scales = layer_scales_of(*best, amax.size(), scales_of(tensor));
    for (const size_t layer : layers) limits->scales.push_back(scales[layer]);
  }
  return range_chart(ranges, limits);
}

bool has_layers(const EvalReport& report) {
  return !report.candidates.empty() && !cached_layers(report.candidates[0].layers).empty();
}

// "0–512": the number of tokens before the prediction.
std::string depth_name(const TokenFigures& figures) {
  return cat(grouped(static_cast<uint64_t>(figures.first_depth)), "–",
             grouped(static_cast<uint64_t>(figures.end_depth)));
}

// The change of perplexity above which caches leave the plot. Finite only if some caches are so far
// off that the nearer ones could not be told apart.
double change_cap(const EvalReport& report) {
  constexpr double kNear = 0.05, kFar = 0.25;
  bool near = false, far = false;
  for (const CandidateReport& each : report.candidates) {
    for (const TokenFigures& of : each.depths) {
      near = near || of.ppl_delta <= kNear;
      far = far || of.ppl_delta > kFar;
    }
  }
  return near && far ? kNear : INFINITY;
}

Chart depth_chart(const EvalReport& report) {
  Chart chart;
  chart.x_label = "tokens in the cache";
  for (const TokenFigures& each : report.baseline.depths) chart.places.push_back(depth_name(each));
  return chart;
}

}  // namespace

std::string range_figures(const EvalReport& report) {
  if (cached_layers(report.magnitudes).empty()) return "";
  return draw_charts(
      std::vector{range_chart_of(report, CacheTensor::k), range_chart_of(report, CacheTensor::v)});
}

std::string head_figure(const EvalReport& report, CacheTensor tensor) {
  const std::vector<size_t> layers = cached_layers(report.magnitudes);
  if (layers.empty()) return "";
  const std::string name = tensor_letter(tensor);
  size_t heads = 0;
  for (const size_t layer : layers) {
    heads = std::max(heads, (report.magnitudes[layer].*magnitudes_of(tensor)).size());
  }
  HeatMap map{.id = cat("heads-", name),
              .title = cat("Largest |", name, "| of each KV head and layer"),
              .caption = cat("Largest |", name, "| of each KV head and layer, logarithmic."),
              .x_label = "layer",
              .y_label = cat("KV head, ", name),
              .x_names = layer_names(layers),
              .y_names = {},
              .values = {},
              .tips = {},
              .empty_zeros = false,
              .of_values = cat("largest |", name, "|"),
              .tick = number_tick};
  for (size_t h = 0; h < heads; ++h) {
    map.y_names.push_back(cat(h));
    auto& values = map.values.emplace_back();
    auto& tips = map.tips.emplace_back();
    for (const size_t layer : layers) {
      const auto& of = report.magnitudes[layer].*magnitudes_of(tensor);
      values.push_back(h < of.size() ? double{of[h].amax} : 0.0);
      tips.push_back(cat("layer ", layer, ", head ", h, ": ",
                         h < of.size() ? short_number(values.back(), 5) : "none"));
    }
  }
  return draw_heat_map(map);
}

std::string attention_error_figure(const EvalReport& report) {
  if (!has_layers(report)) return "";
  Chart chart = error_chart(report, [](const LayerErrors& e) { return e.attention_error; });
  chart.id = "error-attention";
  chart.title = "Relative error of the attention output by layer";
  chart.caption =
      cat("Relative error of the attention output, each layer on its own: computed from "
          "the baseline's Q, K and V",
          report.attention_tokens == report.tokens
              ? ""
              : cat(" of ", count_of(report.attention_tokens, "token"), " spread over the text"),
          ". The figure to trust.");
  return draw_chart(chart);
}

std::string tensor_error_figures(const EvalReport& report) {
  if (!has_layers(report)) return "";
  std::vector<Chart> charts = {
      error_chart(report, [](const LayerErrors& e) { return e.k.relative_error; }),
      error_chart(report, [](const LayerErrors& e) { return e.v.relative_error; })};
  for (const CacheTensor tensor : {CacheTensor::k, CacheTensor::v}) {
    Chart& chart = charts[tensor == CacheTensor::k ? 0 : 1];
    const char* name = tensor_letter(tensor);
    chart.id = cat("error-", name);
    chart.title = cat("Relative error of ", name, " by layer");
    chart.caption = cat("Relative error of ", name, " as the cache returns it.");
  }
  return draw_charts(charts);
}

std::string perplexity_figure(const EvalReport& report) {
  if (report.baseline.depths.size() < 2 || report.candidates.empty()) return "";
  Chart chart = depth_chart(report);
  chart.id = "depth-perplexity";
  chart.title = "Change of perplexity by depth";
  chart.caption =
      cat("Change of perplexity against ", report.baseline.name,
          ", with one standard error. Below zero is chance, not gain.",
          std::isfinite(change_cap(report)) ? " Hollow marks at the upper edge are far beyond it."
                                            : "");
  chart.y_label = "perplexity, change";
  const double cap = change_cap(report);
  chart.tick = percent_tick;
  for (size_t c = 0; c < report.candidates.size(); ++c) {
    const CandidateReport& each = report.candidates[c];
    if (each.depths.size() != chart.places.size()) continue;
    Series series{each.name, SeriesKind::line, static_cast<int>(c), {}, {}, {}};
    for (size_t i = 0; i < each.depths.size(); ++i) {
      const TokenFigures& of = each.depths[i];
      series.values.push_back(of.ppl_delta > cap ? INFINITY : of.ppl_delta);
      series.errors.push_back(of.ppl_delta_error);
      series.tips.push_back(cat(chart.places[i], " tokens, ", each.name, ": ",
                                signed_percent(of.ppl_delta, of.ppl_delta_error)));
    }
    chart.series.push_back(std::move(series));
  }
  return draw_chart(chart);
}

std::string divergence_figure(const EvalReport& report) {
  if (report.baseline.depths.size() < 2 || report.candidates.empty()) return "";
  Chart chart = depth_chart(report);
  chart.id = "depth-divergence";
  chart.title = "Mean KL divergence by depth";
  chart.caption = cat("Mean KL divergence of the next token's distribution from that of ",
                      report.baseline.name, ".");
  chart.y_label = "KL divergence in nats, logarithmic";
  chart.log = true;
  chart.tick = number_tick;
  for (size_t c = 0; c < report.candidates.size(); ++c) {
    const CandidateReport& each = report.candidates[c];
    if (each.depths.size() != chart.places.size()) continue;
    Series series{each.name, SeriesKind::line, static_cast<int>(c), {}, {}, {}};
    for (size_t i = 0; i < each.depths.size(); ++i) {
      series.values.push_back(each.depths[i].kld);
      series.tips.push_back(cat(chart.places[i], " tokens, ", each.name, ": ",
                                short_number(each.depths[i].kld), " nats"));
    }
    chart.series.push_back(std::move(series));
  }
  return draw_chart(chart);
}

std::string capacity_figure(const EvalReport& report) {
  const auto base = static_cast<double>(report.baseline.bytes_per_token);
  if (base == 0) return "";
  BarChart chart{
      "capacity", "Bytes of a token in the cache", "Bytes of one token, all layers.", {}};
  const auto add = [&](const CandidateReport& of) {
    for (const Bar& bar : chart.bars) {
      if (bar.name == of.dtype_name) return;
    }
    const double ratio =
        of.bytes_per_token == 0 ? 0 : base / static_cast<double>(of.bytes_per_token);
    const std::string bytes = cat(grouped(of.bytes_per_token), " bytes");
    chart.bars.push_back(
        {of.dtype_name, static_cast<double>(of.bytes_per_token),
         cat(bytes, ", ", grouped(kGiB / std::max<uint64_t>(1, of.bytes_per_token)),
             " tokens in a GiB: ", short_number(ratio), " ×"),
         cat(of.dtype_name, ": ", bytes)});
  };
  add(report.baseline);
  for (const CandidateReport& each : report.candidates) add(each);
  return draw_bars(chart);
}

}  // namespace fp8kv
