#include "core/model/recurrence.h"

#include <cmath>

namespace fp8kv {

double decay_slope(const RecurrenceConfig& state, int64_t head, int64_t layer, int64_t n_layers) {
  constexpr double kLeast =
      1e-5;  // in the models' own code: keeps slopes of the last layer above 0
  const DecayLayers& layers = state.decay_layers;
  const double of_head =
      std::exp2(-8.0 * static_cast<double>(head + 1) / static_cast<double>(state.v_heads));
  const double before = static_cast<double>(layer - layers.first) /
                        (static_cast<double>(n_layers - 1) + layers.divisor_eps);
  return of_head * (1.0 - before + kLeast);
}

}  // namespace fp8kv
