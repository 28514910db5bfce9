#include "model/parts/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace fp8kv {
namespace {

// llama3: divides the frequency of long wavelengths by `factor`, keeps short ones, and blends
// between.
double llama3_frequency(const RopeConfig& rope, double frequency) {
  const double wavelength = 2 * std::numbers::pi / frequency;
  if (wavelength > rope.original_context / rope.low_freq_factor) return frequency / rope.factor;
  if (wavelength < rope.original_context / rope.high_freq_factor) return frequency;
  const double blend = (rope.original_context / wavelength - rope.low_freq_factor) /
                       (rope.high_freq_factor - rope.low_freq_factor);
  return (1 - blend) * frequency / rope.factor + blend * frequency;
}

// The (fractional) pair that makes `turns` turns within the original context.
double pair_turning(const RopeConfig& rope, double turns, double head_dim) {
  return head_dim * std::log(rope.original_context / (turns * 2 * std::numbers::pi)) /
         (2 * std::log(rope.theta));
}

// yarn: like llama3, but blends along the pairs and not along their wavelengths.
double yarn_frequency(const RopeConfig& rope, double frequency, double pair, double head_dim) {
  double first = pair_turning(rope, rope.beta_fast, head_dim);
  double last = pair_turning(rope, rope.beta_slow, head_dim);
  if (rope.truncate) {
    first = std::floor(first);
    last = std::ceil(last);
  }
  first = std::max(first, 0.0);
  last = std::min(last, head_dim - 1);
  if (first == last) last += 0.001;
  const double slowed = std::clamp((pair - first) / (last - first), 0.0, 1.0);
  return slowed * frequency / rope.factor + (1 - slowed) * frequency;
}

double scaled_frequency(const RopeConfig& rope, double pair, double head_dim) {
  if (!rope.turns) return 0;
  if (rope.turning_pairs > 0 && pair >= static_cast<double>(rope.turning_pairs)) return 0;
  const double frequency = std::pow(rope.theta, -2 * pair / head_dim);
  switch (rope.scaling) {
    case RopeScaling::none:
      break;
    case RopeScaling::linear:
      return frequency / rope.factor;
    case RopeScaling::llama3:
      return llama3_frequency(rope, frequency);
    case RopeScaling::yarn:
      return yarn_frequency(rope, frequency, pair, head_dim);
    case RopeScaling::longrope:
      break;  // by rope_table, which knows how far positions reach
  }
  return frequency;
}

}  // namespace

int64_t rotary_dim(const RopeConfig& rope, int64_t head_dim) {
  return rope.rotary_dim > 0 ? rope.rotary_dim : head_dim;
}

std::vector<float> rope_table(const RopeConfig& rope, int64_t head_dim, int64_t n_positions,
                              double factor) {
  const int64_t rotated = rotary_dim(rope, head_dim);
  const auto half = static_cast<size_t>(rotated / 2);
  const bool goes_beyond = static_cast<double>(n_positions) > rope.original_context;
  const std::vector<double>& factors = goes_beyond ? rope.long_factors : rope.short_factors;
  std::vector<double> frequencies(half);
  for (size_t i = 0; i < half; ++i) {
    frequencies[i] = scaled_frequency(rope, static_cast<double>(i), static_cast<double>(rotated));
    if (rope.scaling == RopeScaling::longrope) frequencies[i] /= factors[i];
    if (rope.backwards) frequencies[i] = -frequencies[i];
  }
  std::vector<float> table(static_cast<size_t>(n_positions) * 2 * half);
  for (size_t position = 0; position < static_cast<size_t>(n_positions); ++position) {
    float* row = table.data() + position * 2 * half;
    for (size_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(position) * frequencies[i];
      row[i] = static_cast<float>(std::cos(angle) * rope.attention_factor * factor);
      row[half + i] = static_cast<float>(std::sin(angle) * rope.attention_factor * factor);
    }
  }
  return table;
}

double q_growth_at(const RopeConfig& rope, double position) {
  const double logarithm =
      rope.q_grows_evenly
          ? std::log(std::max(1.0, (position + 1) / rope.original_context))
          : std::log(1 + std::floor((position + rope.q_growth_from) / rope.original_context));
  return 1 + rope.q_growth * logarithm;
}

std::vector<float> q_rope_table(const RopeConfig& rope, int64_t head_dim, int64_t n_positions) {
  std::vector<float> table = rope_table(rope, head_dim, n_positions);
  const auto width = static_cast<size_t>(rotary_dim(rope, head_dim));
  for (size_t i = 0; i < table.size(); ++i) {
    table[i] = static_cast<float>(table[i] * q_growth_at(rope, static_cast<double>(i / width)));
  }
  return table;
}

}  // namespace fp8kv
