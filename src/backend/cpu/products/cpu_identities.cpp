#include "backend/cpu/products/cpu_identities.h"

namespace fp8kv {

void cpu_add_identities(const CpuContext& cpu, const ConstTensorView& x, const Routed& routed,
                        int64_t first, const TensorView& out) {
  const int64_t k = routed.ids.shape[1], dim = x.shape[1];
  cpu.pool.run(x.shape[0], [&](int64_t row, int /*thread*/) {
    const auto* ids = routed.ids.as<const int32_t>() + row * k;
    const auto* weights = routed.weights.as<const float>() + row * k;
    const float* from = x.as<float>() + row * dim;
    float* to = out.as<float>() + row * dim;
    for (int64_t i = 0; i < k; ++i) {
      for (int64_t j = 0; ids[i] >= first && j < dim; ++j) to[j] += weights[i] * from[j];
    }
  });
}

}  // namespace fp8kv
