#include "model/rope.h"

#include <cmath>
#include <numbers>

namespace fp8kv {
namespace {

// llama3: long wavelengths are slowed by `factor`, short ones kept, those between blended.
double llama3_frequency(const RopeConfig& rope, double frequency) {
  const double wavelength = 2 * std::numbers::pi / frequency;
  if (wavelength > rope.original_context / rope.low_freq_factor) return frequency / rope.factor;
  if (wavelength < rope.original_context / rope.high_freq_factor) return frequency;
  const double blend = (rope.original_context / wavelength - rope.low_freq_factor) /
                       (rope.high_freq_factor - rope.low_freq_factor);
  return (1 - blend) * frequency / rope.factor + blend * frequency;
}

double scaled_frequency(const RopeConfig& rope, double frequency) {
  switch (rope.scaling) {
    case RopeScaling::none:
      break;
    case RopeScaling::linear:
      return frequency / rope.factor;
    case RopeScaling::llama3:
      return llama3_frequency(rope, frequency);
  }
  return frequency;
}

}  // namespace

std::vector<float> rope_table(const RopeConfig& rope, int64_t head_dim, int64_t n_positions) {
  const auto half = static_cast<size_t>(head_dim / 2);
  std::vector<double> frequencies(half);
  for (size_t i = 0; i < half; ++i) {
    const double exponent = 2.0 * static_cast<double>(i) / static_cast<double>(head_dim);
    frequencies[i] = scaled_frequency(rope, std::pow(rope.theta, -exponent));
  }
  std::vector<float> table(static_cast<size_t>(n_positions) * 2 * half);
  for (size_t position = 0; position < static_cast<size_t>(n_positions); ++position) {
    float* row = table.data() + position * 2 * half;
    for (size_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(position) * frequencies[i];
      row[i] = static_cast<float>(std::cos(angle));
      row[half + i] = static_cast<float>(std::sin(angle));
    }
  }
  return table;
}

}  // namespace fp8kv
