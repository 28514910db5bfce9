#include "policy/policies.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "core/numbers/fp8.h"
#include "core/numbers/histogram.h"
#include "core/scales/scale_grid.h"

namespace fp8kv {
namespace {

float amax_scale(const MagnitudeCounts& counts, double factor, KvFormat format) {
  return scale_from_amax(counts.amax, format, factor);
}

float percentile_scale(const MagnitudeCounts& counts, double percent, KvFormat format) {
  return scale_from_amax(magnitude_percentile(counts, percent), format, 1);
}

float unit_scale(const MagnitudeCounts& /*counts*/, double /*unused*/, KvFormat /*format*/) {
  return 1.0f;
}

// The squared error of storing the histogram as E4M3FN at `scale`. Each bin counts at its middle; a
// bin is at most an eighth of a rounding step wide.
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

// Tries scales from amax / 448 outwards in both directions, by sixteenths of an octave, four
// octaves each way. The first minimum wins, so ties go to the scale nearest to amax.
float least_squares_scale(const MagnitudeCounts& counts, double /*unused*/, KvFormat /*format*/) {
  constexpr int kStepsPerOctave = 16;
  constexpr int kOctaves = 4;
  const float amax = scale_from_amax(counts.amax, KvFormat::e4m3fn, 1);
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

// Losses choose the mantissa, the first among equals; amax chooses the octave.
float least_loss_scale(const MagnitudeCounts& counts, double factor, KvFormat format) {
  FP8KV_ASSERT(std::ssize(counts.losses) == kScaleMantissas);
  if (counts.amax == 0) return 1.0f;
  const auto best = std::min_element(counts.losses.begin(), counts.losses.end());
  return grid_scale(static_cast<int>(best - counts.losses.begin()),
                    scale_from_amax(counts.amax, format, factor));
}

// The number, if all of `text` is one.
std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

// Parses `rest`, the text after the policy's name. Returns nullopt if it makes no sense.
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

const PolicyKind& kind_for(ScaleSharing sharing) {
  const std::vector<PolicyKind>& kinds = policy_kinds();
  return *std::find_if(kinds.begin(), kinds.end(), [&](const PolicyKind& kind) {
    return kind.needs == PolicyNeeds::maxima && kind.sharing == sharing;
  });
}

}  // namespace

const std::vector<PolicyKind>& policy_kinds() {
  static const std::vector<PolicyKind> kinds = {
      {"amax", "amax[*F]", "largest magnitude / 448, times a headroom F", ScaleSharing::tensor,
       PolicyParameter::factor, PolicyNeeds::maxima, amax_scale},
      {"head", "head[*F]", "the same, of each KV head", ScaleSharing::head, PolicyParameter::factor,
       PolicyNeeds::maxima, amax_scale},
      {"shared", "shared[*F]", "the same, of K and V together", ScaleSharing::shared,
       PolicyParameter::factor, PolicyNeeds::maxima, amax_scale},
      {"loss", "loss[*F]", "least loss of attention, from amax[*F] to twice that",
       ScaleSharing::tensor, PolicyParameter::factor, PolicyNeeds::losses, least_loss_scale},
      {"head-loss", "head-loss[*F]", "the same, of each KV head", ScaleSharing::head,
       PolicyParameter::factor, PolicyNeeds::losses, least_loss_scale},
      {"mse", "mse", "least squared error of the values", ScaleSharing::tensor,
       PolicyParameter::none, PolicyNeeds::histograms, least_squares_scale},
      {"p", "pNN.NN", "percentile of the magnitudes / 448: clips what is above",
       ScaleSharing::tensor, PolicyParameter::percent, PolicyNeeds::histograms, percentile_scale},
      {"unit", "unit", "1 everywhere: what runtimes do without scales", ScaleSharing::tensor,
       PolicyParameter::none, PolicyNeeds::nothing, unit_scale},
  };
  return kinds;
}

bool PolicyKind::for_nvfp4() const {
  return sharing == ScaleSharing::tensor && scale != least_squares_scale &&
         needs != PolicyNeeds::losses;
}

bool needs_histograms(const PolicyKind& kind) {
  return kind.needs == PolicyNeeds::histograms || kind.needs == PolicyNeeds::losses;
}

double Policy::headroom() const {
  return kind->parameter == PolicyParameter::factor ? parameter : 1;
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
      fail(quote(text), ": the factor ", quote(rest.substr(1)),
           " is no number from 1/1024 to 1024");
    }
    if (kind.parameter == PolicyParameter::percent && number_in(rest)) {
      fail(quote(text), ": the percentage ", rest, " is not above 0 and at most 100");
    }
  }
  fail(quote(text), " is none of ", join(spellings), did_you_mean(text, names));
}

Policy amax_policy(ScaleSharing sharing, double factor) {
  Policy policy{"", &kind_for(sharing), factor};
  policy.text = policy_name(policy);
  return policy;
}

Policy without_losses(const Policy& policy) {
  if (policy.kind->needs != PolicyNeeds::losses) return policy;
  return amax_policy(policy.kind->sharing, policy.parameter);
}

std::string policy_name(const Policy& policy) {
  switch (policy.kind->parameter) {
    case PolicyParameter::none:
      break;
    case PolicyParameter::factor:
      return policy.parameter == 1 ? policy.kind->name
                                   : cat(policy.kind->name, "*", policy.parameter);
    case PolicyParameter::percent:
      return cat(policy.kind->name, policy.parameter);
  }
  return policy.kind->name;
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
