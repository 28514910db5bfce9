#include "report/text_plot.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "draw/numbers.h"
#include "report/advice.h"
#include "report/verdict.h"

namespace fp8kv {
namespace {

constexpr size_t kLeastWidth = 64;

// A row of the plot: one string per column.
using Row = std::vector<std::string>;

// The number of columns of a text: one for each character.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string left(const std::string& text, size_t columns) {
  return text + std::string(columns - std::min(columns, width_of(text)), ' ');
}

std::string right(const std::string& text, size_t columns) {
  return std::string(columns - std::min(columns, width_of(text)), ' ') + text;
}

// At most `columns` bytes of ASCII; other characters of a foreign name are escaped.
std::string label(const std::string& name, size_t columns) {
  std::string text = quote(name);
  text = text.substr(1, text.size() - 2);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  }
  return text.size() <= columns ? text : text.substr(0, columns - 2) + "..";
}

// A bar over `share` of the columns, in steps of an eighth of a column.
Row bar(double share, size_t columns) {
  static constexpr const char* kEighths[] = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double clamped = std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 1.0;
  const auto eighths = static_cast<size_t>(std::lround(clamped * static_cast<double>(columns * 8)));
  Row row(columns, " ");
  for (size_t i = 0; i < eighths / 8; ++i) row[i] = "█";
  if (eighths % 8 != 0) row[eighths / 8] = kEighths[eighths % 8];
  return row;
}

std::string joined(const Row& row) {
  std::string text;
  for (const std::string& each : row) text += each;
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

struct LogRange {
  double low;
  double high;

  double share(double value) const {
    return value <= 0 ? 0 : std::log(value / low) / std::log(high / low);
  }
};

LogRange range_over(const std::vector<double>& values) {
  LogRange range{INFINITY, 0};
  for (const double value : values) {
    if (!(value > 0) || !std::isfinite(value)) continue;
    range.low = std::min(range.low, value);
    range.high = std::max(range.high, value);
  }
  if (range.high == 0) return {1, 2};
  return {std::exp2(std::floor(std::log2(range.low))),
          std::exp2(std::floor(std::log2(range.high)) + 1)};
}

// Writes `with` at the column of `value`.
void mark(Row& row, const LogRange& range, double value, const char* with) {
  const double at = std::floor(range.share(value) * static_cast<double>(row.size()));
  row[static_cast<size_t>(std::clamp(at, 0.0, static_cast<double>(row.size() - 1)))] = with;
}

// The data of one plot: the largest magnitude and the scale of each layer; both 0 without a cache.
struct RangesOf {
  char tensor;
  std::vector<double> amax;
  std::vector<double> scales;
  Fp8Spec spec;
};

std::string range_plot(const RangesOf& of, size_t width) {
  const double max = of.spec.max;
  const double min = of.spec.min_subnormal;
  std::vector<double> all = of.amax;
  all.insert(all.end(), {max, min});
  for (const double scale : of.scales) all.insert(all.end(), {scale * max, scale * min});
  const LogRange range = range_over(all);
  const size_t columns = width - 16;
  std::string out = cat("Largest |", of.tensor, "| of each layer, from 2^", std::ilogb(range.low),
                        " to 2^", std::ilogb(range.high), " in equal octaves\n");
  for (size_t i = 0; i < of.amax.size(); ++i) {
    if (of.scales[i] == 0) {
      out += cat(right(cat(i), 4), "  -\n");
      continue;
    }
    Row row = bar(range.share(of.amax[i]), columns);
    for (const double limit : {min, max}) mark(row, range, limit, "┊");
    for (const double limit : {min, max}) mark(row, range, limit * of.scales[i], "│");
    out +=
        cat(right(cat(i), 4), "  ", left(short_number(of.amax[i], 4), 9), " ", joined(row), "\n");
  }
  return out;
}

std::string range_plot(const EvalReport& report, const CandidateReport& best, bool key,
                       size_t width) {
  const auto amax =
      layer_amax_of(report.magnitudes, key ? &LayerMagnitudes::k : &LayerMagnitudes::v);
  auto scales = layer_scales_of(best, amax.size(), key ? &LayerScales::k : &LayerScales::v);
  for (size_t i = 0; i < scales.size(); ++i) {
    if (!report.magnitudes[i].has_cache()) scales[i] = 0;
  }
  return range_plot({key ? 'K' : 'V', amax, scales, fp8_spec(*fp8_format(best.dtype))}, width);
}

// One number per layer: the largest of its heads, as in all tables.
RangesOf ranges_of(const KvScales& scales, bool key) {
  RangesOf ranges{key ? 'K' : 'V', {}, {}, kv_range(scales.format)};
  for (size_t i = 0; i < scales.layers.size(); ++i) {
    const LayerAmax& amax = scales.provenance.amax[i];
    const LayerScales& of = scales.layers[i];
    ranges.amax.push_back(largest(key ? amax.k : amax.v));
    ranges.scales.push_back(of.has_cache() ? largest(key ? of.k : of.v) : 0);
  }
  return ranges;
}

std::string limits_note(const Fp8Spec& spec, const std::string& scale) {
  const std::string pair =
      cat(short_number(double{spec.max}, 6), " and 2^", std::ilogb(spec.min_subnormal));
  return cat("│ ", pair, " times the scale\n", scale, "┊ ", pair, " at scale 1\n");
}

std::string error_plot(const EvalReport& report, size_t width) {
  double most = 0;
  size_t longest = 0;
  for (const CandidateReport& each : report.candidates) {
    longest = std::max(longest, label(each.name, width / 3).size());
    for (const LayerErrors& layer : each.layers) {
      if (std::isfinite(layer.attention_error)) most = std::max(most, layer.attention_error);
    }
  }
  const size_t columns = width - longest - 17;
  std::string out = cat("Relative error of the attention output, to ", short_percent(most), "\n");
  for (size_t i = 0; i < report.candidates[0].layers.size(); ++i) {
    if (!report.candidates[0].layers[i].has_cache()) {
      out += cat(right(cat(i), 4), "  -\n");
      continue;
    }
    for (size_t c = 0; c < report.candidates.size(); ++c) {
      const CandidateReport& each = report.candidates[c];
      if (i >= each.layers.size()) continue;
      const double error = each.layers[i].attention_error;
      out += cat(right(c == 0 ? cat(i) : "", 4), "  ", left(label(each.name, width / 3), longest),
                 "  ", right(short_percent(error), 8), " ",
                 joined(bar(most > 0 ? error / most : 0, columns)));
      out.erase(out.find_last_not_of(' ') + 1);
      out += "\n";
    }
  }
  return out;
}

}  // namespace

std::string text_plot(const EvalReport& report, int width) {
  const size_t columns = std::max(kLeastWidth, static_cast<size_t>(std::max(width, 0)));
  const CandidateReport* best = advised_fp8(report);
  std::string out;
  if (best != nullptr && !report.magnitudes.empty()) {
    out += range_plot(report, *best, true, columns) + "\n" +
           range_plot(report, *best, false, columns) +
           limits_note(fp8_spec(*fp8_format(best->dtype)),
                       cat("  of ", label(best->name, columns - 5), "\n"));
  }
  if (!report.candidates.empty() && !report.candidates[0].layers.empty()) {
    if (!out.empty()) out += "\n";
    out += error_plot(report, columns);
  }
  return out;
}

std::string text_plot(const KvScales& scales, int width) {
  FP8KV_ASSERT(scales.provenance.amax.size() == scales.layers.size());
  const size_t columns = std::max(kLeastWidth, static_cast<size_t>(std::max(width, 0)));
  return cat(range_plot(ranges_of(scales, true), columns), "\n",
             range_plot(ranges_of(scales, false), columns),
             limits_note(kv_range(scales.format), ""));
}

}  // namespace fp8kv
