#include "model/parts/laurel.h"

#include <array>

#include "model/parts/projections.h"

namespace fp8kv {

LaurelForward::LaurelForward(ForwardMemory& memory, const ModelConfig& config)
    : backend_(memory.backend()) {
  out_ = memory.rows(config.dim);
  low_ = memory.rows(config.laurel_rank);
}

TensorView LaurelForward::run(const LaurelWeights& weights, const ConstTensorView& x) {
  const TensorView low = low_.first(x.shape[0]), out = out_.first(x.shape[0]);
  backend_.linear(x, std::array{project_to(weights.down, low)});
  backend_.linear(low, std::array{project_to(weights.up, out)});
  backend_.norm(out, weights.norm, out);
  backend_.add(out, x, 1.0f);
  return out;
}

}  // namespace fp8kv
