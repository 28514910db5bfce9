#include "report/pages/scales_figures.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/text.h"
#include "draw/chart.h"
#include "draw/html.h"
#include "draw/numbers.h"
#include "report/pages/octave_map.h"

namespace fp8kv {
namespace {

const std::vector<float>& amax_of(const LayerAmax& layer, CacheTensor tensor) {
  return tensor == CacheTensor::k ? layer.k : layer.v;
}

const OctaveCounts& octaves_of(const LayerOctaves& layer, CacheTensor tensor) {
  return tensor == CacheTensor::k ? layer.k : layer.v;
}

// The numbers of the layers with a cache.
std::vector<size_t> cached_layers(const KvScales& scales) {
  std::vector<size_t> layers;
  for (size_t i = 0; i < scales.layers.size(); ++i) {
    if (scales.layers[i].has_cache()) layers.push_back(i);
  }
  return layers;
}

bool knows_half(const KvScales& scales) {
  return !scales.provenance.parts.back().layers.empty();
}

// The amax after half of the text as a share of the amax after all of it; NaN in a layer of zeros.
double share_of_half(const KvScales& scales, size_t layer, CacheTensor tensor) {
  const double half = largest(amax_of(scales.provenance.parts.back().layers[layer], tensor));
  const double all = largest(amax_of(scales.provenance.amax[layer], tensor));
  return half / all;
}

// The median of the nonzero values, if those of its octave are spread evenly over the octave's
// logarithms; 0 if all values are zero.
double median_of(const OctaveCounts& of) {
  if (of.nonzero() == 0) return 0;
  const int octave = of.median_octave();
  const auto at = static_cast<size_t>(octave - of.first);
  const auto below = static_cast<double>(
      std::accumulate(of.counts.begin(), of.counts.begin() + octave - of.first, uint64_t{0}));
  const double within = static_cast<double>(of.nonzero()) / 2 - below;
  return std::ldexp(std::exp2(within / static_cast<double>(of.counts[at])), octave);
}

RangeLimits limits_of(const KvScales& scales, const std::vector<size_t>& layers,
                      CacheTensor tensor) {
  RangeLimits limits{kv_range(scales.format), {}, "these scales"};
  for (const size_t layer : layers) {
    const LayerScales& of = scales.layers[layer];
    limits.scales.push_back(largest(tensor == CacheTensor::k ? of.k : of.v));
  }
  return limits;
}

Chart range_chart_of(const KvScales& scales, CacheTensor tensor) {
  const std::vector<size_t> layers = cached_layers(scales);
  const Provenance& from = scales.provenance;
  LayerRanges ranges{tensor, layer_names(layers), {}, {}};
  for (const size_t layer : layers) {
    ranges.largest.push_back(largest(amax_of(from.amax[layer], tensor)));
    if (from.octaves.empty()) continue;
    const OctaveCounts& octaves = octaves_of(from.octaves[layer], tensor);
    ranges.median.push_back(std::min(median_of(octaves), ranges.largest.back()));
  }
  return range_chart(ranges, limits_of(scales, layers, tensor));
}

}  // namespace

std::string range_figures(const KvScales& scales) {
  return draw_charts(
      std::vector{range_chart_of(scales, CacheTensor::k), range_chart_of(scales, CacheTensor::v)});
}

std::string octave_figure(const KvScales& scales, CacheTensor tensor) {
  if (scales.provenance.octaves.empty()) return "";
  const std::vector<size_t> layers = cached_layers(scales);
  LayerOctaveMap map{tensor, layer_names(layers), {}, limits_of(scales, layers, tensor)};
  for (const size_t layer : layers) {
    map.counts.push_back(octaves_of(scales.provenance.octaves[layer], tensor));
  }
  return octave_map(map);
}

std::string half_figure(const KvScales& scales) {
  if (!knows_half(scales)) return "";
  const std::vector<size_t> layers = cached_layers(scales);
  Chart chart{.id = "half-amax",
              .title = "Largest magnitude after half of the text",
              .caption =
                  "Largest |K| and |V| after about half of the text, as a share of what all of it "
                  "reached. Near 100 %, more text would change little.",
              .x_label = "layer",
              .y_label = "share of the final amax",
              .places = layer_names(layers),
              .log = false,
              .tick = [](double value) { return short_percent(value); },
              .series = {}};
  for (const CacheTensor tensor : {CacheTensor::k, CacheTensor::v}) {
    Series series{
        tensor_letter(tensor), SeriesKind::line, tensor == CacheTensor::k ? 0 : 1, {}, {}, {}};
    for (const size_t layer : layers) {
      const double share = share_of_half(scales, layer, tensor);
      series.values.push_back(std::isfinite(share) ? share : 1);  // 1 in a layer of zeros
      series.tips.push_back(
          cat("layer ", layer, ", ", series.name, ": ", short_percent(series.values.back(), 4)));
    }
    chart.series.push_back(std::move(series));
  }
  return draw_chart(chart);
}

std::string half_table(const KvScales& scales) {
  if (!knows_half(scales)) return "";
  const Provenance& from = scales.provenance;
  const AmaxAfter& part = from.parts.back();
  HtmlTable table{.caption = "Largest magnitude after so many tokens of the text.",
                  .header = {"layer", "tensor", grouped(part.tokens), grouped(from.tokens)},
                  .rows = {},
                  .names = 2,
                  .sortable = true};
  for (const size_t layer : cached_layers(scales)) {
    for (const CacheTensor tensor : {CacheTensor::k, CacheTensor::v}) {
      const double half = largest(amax_of(part.layers[layer], tensor));
      const double all = largest(amax_of(from.amax[layer], tensor));
      table.rows.push_back({{cat(layer), ""},
                            {tensor_letter(tensor), ""},
                            {short_number(half, 5), cat(half)},
                            {short_number(all, 5), cat(all)}});
    }
  }
  return html_table(table);
}

}  // namespace fp8kv
