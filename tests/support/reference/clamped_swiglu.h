// Clamped SwiGLUs in double precision, by their definition.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/model/block.h"

namespace fp8kv::test {

inline double exact_clamped_swiglu(const ClampedSwiglu& how, double gate, double up) {
  const double limit = double{how.limit}, least = std::min(gate, limit);
  const double within = std::clamp(up, -limit, limit);
  const auto silu = [](double x) { return x / (1 + std::exp(-x)); };
  switch (how.form) {
    case SwigluForm::plus_one:
      return least / (1 + std::exp(-double{how.alpha} * least)) * (within + 1);
    case SwigluForm::silu:
      return silu(least) * within;
    case SwigluForm::after:
      return std::min(silu(gate), limit) * within;
    case SwigluForm::situ: {
      const double alpha = double{how.alpha};
      return alpha * std::tanh(gate / alpha) / (1 + std::exp(-gate)) * limit *
             std::tanh(up / limit);
    }
  }
  return NAN;
}

}  // namespace fp8kv::test
