#include "equalize/exponent_search.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "equalize/key_error.h"

namespace fp8kv {
namespace {

// A change must lower the error to this share, or the descent would follow rounding noise.
constexpr double kLeastGain = 0.9995;
constexpr int kSteps[] = {-2, -1, 1, 2};
// Room in stored scales above the layer's amax, because exponents enlarge some channels.
constexpr double kGrowth = 4;
// Parts of an octave at which stored scales are tried.
constexpr int kScales = 4;

// The scales that a calibration may store, over an octave. Which one it will be is not known, since
// it depends on the largest value of other text. Block scales are rounded relative to it, so one
// scale alone would favour exponents that suit its mantissa by chance.
std::vector<float> stored_scales(const SearchOptions& options) {
  if (!kv_spec(options.format).stored_scale || options.amax <= 0) return {1.0f};
  const double most = double{options.amax} * kGrowth / double{kv_range(options.format).max};
  std::vector<float> scales;
  for (int i = 0; i < kScales; ++i) {
    scales.push_back(static_cast<float>(most * std::exp2(-static_cast<double>(i) / kScales)));
  }
  return scales;
}

using KeyErrors = std::vector<std::unique_ptr<KeyError>>;

// The errors of each head with each stored scale.
KeyErrors errors_of(std::span<const HeadSample> heads, const ChannelGroups& groups,
                    const SearchOptions& options) {
  KeyErrors errors;
  for (const HeadSample& head : heads) {
    for (const float stored : stored_scales(options)) {
      errors.push_back(make_key_error(head, groups, options.format, stored));
    }
  }
  return errors;
}

double sum_of(const KeyErrors& errors) {
  double sum = 0;
  for (const auto& each : errors) sum += each->value();
  return sum;
}

// The root mean square of a group's channels over all heads; 0 if they are all zero.
double group_rms(std::span<const HeadSample> heads, const std::vector<int64_t>& channels) {
  double sum = 0, count = 0;
  for (const HeadSample& head : heads) {
    const auto dim = static_cast<size_t>(head.dim);
    for (size_t row = 0; row < head.rows(); ++row) {
      for (const int64_t channel : channels) {
        const double x = head.keys[row * dim + static_cast<size_t>(channel)];
        sum += x * x;
        ++count;
      }
    }
  }
  return count == 0 ? 0 : std::sqrt(sum / count);
}

// The allowed exponent that is nearest to `wanted`.
int nearest(const ExponentSet& allowed, double wanted) {
  int best = 0;
  for (int e = -kMostExponent; e <= kMostExponent; ++e) {
    if (allowed.has(e) && std::abs(e - wanted) < std::abs(best - wanted)) best = e;
  }
  return best;
}

// The exponents that make all groups equally large.
Exponents flat(std::span<const HeadSample> heads, const ChannelGroups& groups,
               std::span<const ExponentSet> allowed) {
  std::vector<double> sizes;
  double sum = 0, count = 0;
  for (const auto& group : groups) {
    const double rms = group_rms(heads, group);
    sizes.push_back(rms > 0 ? std::log2(rms) : HUGE_VAL);
    if (rms > 0) {
      sum += sizes.back();
      ++count;
    }
  }
  Exponents exponents(groups.size());
  for (size_t g = 0; g < groups.size(); ++g) {
    if (sizes[g] != HUGE_VAL) exponents[g] = nearest(allowed[g], sum / count - sizes[g]);
  }
  return exponents;
}

struct Descent {
  Exponents exponents;
  double error = 0;
};

Descent descend(Exponents start, KeyErrors& errors, const ChannelGroups& groups,
                std::span<const ExponentSet> allowed, int passes) {
  Descent at{std::move(start)};
  for (int pass = 0; pass < passes; ++pass) {
    for (const auto& each : errors) each->set(at.exponents);
    at.error = sum_of(errors);
    bool changed = false;
    for (size_t group = 0; group < groups.size(); ++group) {
      const int from = at.exponents[group];
      int best = from;
      double least = at.error * kLeastGain;
      for (const int step : kSteps) {
        if (!allowed[group].has(from + step)) continue;
        double error = 0;
        for (const auto& each : errors) error += each->value_with(group, from + step);
        if (error >= least) continue;
        least = error;
        best = from + step;
      }
      if (best == from) continue;
      for (const auto& each : errors) each->change(group, best);
      at.exponents[group] = best;
      at.error = sum_of(errors);
      changed = true;
    }
    if (!changed) break;
  }
  return at;
}

}  // namespace

Exponents search_exponents(std::span<const HeadSample> heads, const ChannelGroups& groups,
                           std::span<const ExponentSet> allowed, const SearchOptions& options) {
  KeyErrors errors = errors_of(heads, groups, options);
  const Exponents none(groups.size());
  Descent best = descend(none, errors, groups, allowed, options.passes);
  Descent other = descend(flat(heads, groups, allowed), errors, groups, allowed, options.passes);
  return other.error < best.error ? std::move(other.exponents) : std::move(best.exponents);
}

double ErrorsOfHeads::ratio() const {
  const double was = std::accumulate(before.begin(), before.end(), 0.0);
  return was > 0 ? std::accumulate(after.begin(), after.end(), 0.0) / was : 1.0;
}

ErrorsOfHeads errors_with(std::span<const HeadSample> heads, const ChannelGroups& groups,
                          const Exponents& exponents, const SearchOptions& options) {
  ErrorsOfHeads found;
  for (const auto& each : errors_of(heads, groups, options)) {
    const auto add = [](std::vector<double>& to, const std::vector<double>& windows) {
      to.resize(windows.size());
      for (size_t i = 0; i < windows.size(); ++i) to[i] += windows[i];
    };
    add(found.before, each->by_window());
    each->set(exponents);
    add(found.after, each->by_window());
  }
  return found;
}

bool holds_up(const ErrorsOfHeads& errors) {
  for (size_t i = 0; i < errors.before.size(); ++i) {
    if (errors.after[i] > errors.before[i]) return false;
  }
  return errors.ratio() <= kClearGain;
}

}  // namespace fp8kv
