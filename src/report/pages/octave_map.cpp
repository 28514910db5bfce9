#include "report/pages/octave_map.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "draw/heat_map.h"
#include "draw/numbers.h"

namespace fp8kv {
namespace {

// The rows of a map: octaves from `last` down to `first`.
struct Rows {
  int first = kLastOctave;
  int last = kFirstOctave;

  void take_in(int octave) {
    first = std::min(first, std::max(octave, kFirstOctave));
    last = std::max(last, std::min(octave, kLastOctave));
  }
  // The distance from the top, in rows; NaN outside.
  double of(double magnitude) const {
    const double row = last + 1 - std::log2(magnitude);
    return row >= 0 && row <= last + 1 - first ? row : NAN;
  }
};

// The largest code and the end of full precision, at a scale of 1.
std::vector<double> limits_of(const Fp8Spec& spec) {
  return {spec.max, spec.min_normal};
}

bool all_one(const std::vector<double>& scales) {
  return std::all_of(scales.begin(), scales.end(), [](double scale) { return scale == 1; });
}

// Octaves with values, and those of the limits, so that all lines are on the map.
Rows rows_of(const LayerOctaveMap& of) {
  Rows rows;
  for (const OctaveCounts& each : of.counts) {
    if (each.counts.empty()) continue;
    rows.take_in(each.first);
    rows.take_in(each.first + static_cast<int>(each.counts.size()) - 1);
  }
  if (rows.first > rows.last) return rows;
  for (const double limit : limits_of(of.limits.spec)) {
    rows.take_in(std::ilogb(limit));
    for (const double scale : of.limits.scales) rows.take_in(std::ilogb(limit * scale));
  }
  return rows;
}

std::vector<HeatLine> lines_of(const LayerOctaveMap& of, const Rows& rows) {
  std::vector<HeatLine> lines;
  const auto add = [&](const char* when, bool at_one) {
    bool first = true;
    for (const double limit : limits_of(of.limits.spec)) {
      HeatLine line{
          first ? cat("largest code, and end of full precision, ", when) : "", {}, at_one};
      first = false;
      for (const double scale : of.limits.scales) {
        line.rows.push_back(rows.of(limit * (at_one ? 1 : scale)));
      }
      lines.push_back(std::move(line));
    }
  };
  if (!all_one(of.limits.scales)) add("with these scales", false);
  add("at a scale of 1", true);
  return lines;
}

}  // namespace

std::string octave_map(const LayerOctaveMap& of) {
  const Rows rows = rows_of(of);
  if (rows.first > rows.last) return "";
  const Fp8Spec& spec = of.limits.spec;
  const std::string name = tensor_letter(of.tensor);
  HeatMap map{.id = cat("octaves-", name),
              .title = cat("Octaves of ", name, " by layer"),
              .caption = cat("Share of the values of ", name,
                             " that lie in each octave: from a power of two to the next. Values "
                             "above the upper line saturate. Below the lower line each octave "
                             "costs a bit, and values ",
                             std::ilogb(spec.min_normal) - std::ilogb(spec.min_subnormal) + 1,
                             " octaves below it become zero."),
              .x_label = "layer",
              .y_label = cat("|", name, "| from"),
              .x_names = of.layers,
              .y_names = {},
              .values = {},
              .tips = {},
              .empty_zeros = true,
              .of_values = "share of a layer's values",
              .tick = [](double share) { return short_percent(share, 2); },
              .lines = lines_of(of, rows)};
  for (int octave = rows.last; octave >= rows.first; --octave) {
    const std::string from = cat("2", superscript(octave));
    map.y_names.push_back(from);
    auto& values = map.values.emplace_back();
    auto& tips = map.tips.emplace_back();
    for (size_t i = 0; i < of.counts.size(); ++i) {
      const OctaveCounts& counts = of.counts[i];
      const int at = octave - counts.first;
      const bool inside = at >= 0 && at < static_cast<int>(counts.counts.size());
      const auto counted =
          inside ? static_cast<double>(counts.counts[static_cast<size_t>(at)]) : 0.0;
      values.push_back(counted > 0 ? counted / static_cast<double>(counts.nonzero()) : 0);
      tips.push_back(
          cat("layer ", of.layers[i], ", from ", from, ": ", short_percent(values.back())));
    }
  }
  return draw_heat_map(map);
}

}  // namespace fp8kv
