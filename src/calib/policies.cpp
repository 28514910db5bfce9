#include "calib/policies.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "core/fp8.h"
#include "core/histogram.h"

namespace fp8kv {
namespace {

float amax_scale(const MagnitudeCounts& counts, double factor) {
  return scale_from_amax(counts.amax, Fp8Format::e4m3fn, factor);
}

float percentile_scale(const MagnitudeCounts& counts, double percent) {
  return scale_from_amax(magnitude_percentile(counts, percent), Fp8Format::e4m3fn, 1);
}

float unit_scale(const MagnitudeCounts& /*counts*/, double /*unused*/) {
  return 1.0f;
}

// Squared error of storing every value of the histogram as E4M3FN at `scale`, each bin taken at its
// middle: a bin is an eighth of a rounding step wide or less.
double squared_error(const MagnitudeCounts& counts, float scale) {
  double sum = 0;
  for (int bin = 1; bin < kMagnitudeBins; ++bin) {
    const uint64_t count = counts.bins[static_cast<size_t>(bin)];
    if (count == 0) continue;
    const float low = magnitude_bin_floor(bin);
    const float top = bin + 1 < kMagnitudeBins ? magnitude_bin_floor(bin + 1) : counts.amax;
    const float value = std::min((low + top) / 2, counts.amax);
    const float stored =
        fp8_decode<Fp8Format::e4m3fn>(fp8_encode<Fp8Format::e4m3fn>(value / scale)) * scale;
    const double error = double{value} - double{stored};
    sum += static_cast<double>(count) * error * error;
  }
  return sum;
}

// From amax / 448 outwards in both directions by sixteenths of an octave, four octaves each way;
// the first of equals wins, so ties go to the nearest to amax.
float least_squares_scale(const MagnitudeCounts& counts, double /*unused*/) {
  constexpr int kStepsPerOctave = 16;
  constexpr int kOctaves = 4;
  const float amax = scale_from_amax(counts.amax, Fp8Format::e4m3fn, 1);
  float best = amax;
  double least = std::numeric_limits<double>::infinity();
  for (int step = 0; step <= kStepsPerOctave * kOctaves; ++step) {
    for (const int sign : {1, -1}) {
      const float scale =
          amax * static_cast<float>(std::exp2(static_cast<double>(sign * step) / kStepsPerOctave));
      const double error = squared_error(counts, scale);
      if (error < least) {
        least = error;
        best = scale;
      }
    }
  }
  return best;
}

MagnitudeCounts sum_of(const std::vector<MagnitudeCounts>& heads) {
  MagnitudeCounts sum;
  for (const MagnitudeCounts& head : heads) sum.add(head);
  return sum;
}

std::vector<float> each_head(const Policy& policy, const std::vector<MagnitudeCounts>& heads) {
  std::vector<float> scales;
  for (const MagnitudeCounts& head : heads) {
    scales.push_back(policy.kind->scale(head, policy.parameter));
  }
  return scales;
}

LayerScales layer_scales(const Policy& policy, const LayerMagnitudes& layer) {
  if (policy.kind->sharing == ScaleSharing::head) {
    return {each_head(policy, layer.k), each_head(policy, layer.v)};
  }
  MagnitudeCounts k = sum_of(layer.k);
  MagnitudeCounts v = sum_of(layer.v);
  if (policy.kind->sharing == ScaleSharing::shared) {
    k.add(v);
    v = k;
  }
  return {{policy.kind->scale(k, policy.parameter)}, {policy.kind->scale(v, policy.parameter)}};
}

// The number that is all of `text`.
std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

// The parameter that `rest`, the text after the name, stands for; nullopt when it makes no sense.
std::optional<double> parameter_in(PolicyParameter parameter, std::string_view rest) {
  std::optional<double> value;
  switch (parameter) {
    case PolicyParameter::none:
      return rest.empty() ? std::optional(0.0) : std::nullopt;
    case PolicyParameter::factor:
      if (rest.empty()) return 1.0;
      if (rest[0] == '*') value = number_in(rest.substr(1));
      return value && *value >= 1.0 / 1024 && *value <= 1024 ? value : std::nullopt;
    case PolicyParameter::percent:
      value = number_in(rest);
      return value && *value > 0 && *value <= 100 ? value : std::nullopt;
  }
  return std::nullopt;
}

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  throw Error(cat("--policy: ", quote(text), ": ", why),
              "as in amax, amax*2, head*1.5, p99.99, mse", ErrorKind::usage);
}

}  // namespace

const std::vector<PolicyKind>& policy_kinds() {
  static const std::vector<PolicyKind> kinds = {
      {"amax", "amax[*F]", "largest magnitude / 448, times a headroom F", ScaleSharing::tensor,
       PolicyParameter::factor, amax_scale},
      {"head", "head[*F]", "the same, of each KV head", ScaleSharing::head, PolicyParameter::factor,
       amax_scale},
      {"shared", "shared[*F]", "the same, of K and V together", ScaleSharing::shared,
       PolicyParameter::factor, amax_scale},
      {"mse", "mse", "least squared error of the values", ScaleSharing::tensor,
       PolicyParameter::none, least_squares_scale},
      {"p", "pNN.NN", "percentile of the magnitudes / 448: clips what is above",
       ScaleSharing::tensor, PolicyParameter::percent, percentile_scale},
      {"unit", "unit", "1 everywhere: what runtimes do without scales", ScaleSharing::tensor,
       PolicyParameter::none, unit_scale},
  };
  return kinds;
}

Policy parse_policy(const std::string& text) {
  std::vector<std::string> spellings, names;
  for (const PolicyKind& kind : policy_kinds()) {
    spellings.push_back(kind.spelling);
    if (kind.parameter != PolicyParameter::percent) names.push_back(kind.name);
    if (!text.starts_with(kind.name)) continue;
    const std::string_view rest = std::string_view(text).substr(kind.name.size());
    const auto parameter = parameter_in(kind.parameter, rest);
    if (parameter) return {text, &kind, *parameter};
    if (kind.parameter == PolicyParameter::factor && rest[0] == '*') {
      refuse(text, cat("the factor ", quote(rest.substr(1)), " is no number from 1/1024 to 1024"));
    }
    if (kind.parameter == PolicyParameter::percent && number_in(rest)) {
      refuse(text, cat("the percentage ", rest, " is not above 0 and at most 100"));
    }
  }
  throw Error(
      cat("--policy: ", quote(text), " is none of ", join(spellings), did_you_mean(text, names)),
      "F is a factor up to 1024, NN.NN a percentage up to 100", ErrorKind::usage);
}

KvScales policy_scales(const Policy& policy, const std::vector<LayerMagnitudes>& layers) {
  KvScales scales;
  scales.provenance.source = cat("policy ", policy.text);
  for (const LayerMagnitudes& layer : layers) {
    scales.layers.push_back(layer_scales(policy, layer));
  }
  return scales;
}

float magnitude_percentile(const MagnitudeCounts& counts, double percent) {
  uint64_t total = 0;
  for (const uint64_t count : counts.bins) total += count;
  const double wanted = std::ceil(static_cast<double>(total) * percent / 100);
  uint64_t seen = 0;
  for (int bin = 0; bin + 1 < kMagnitudeBins; ++bin) {
    seen += counts.bins[static_cast<size_t>(bin)];
    if (static_cast<double>(seen) >= wanted) {
      return std::min(magnitude_bin_floor(bin + 1), counts.amax);
    }
  }
  return counts.amax;
}

}  // namespace fp8kv
