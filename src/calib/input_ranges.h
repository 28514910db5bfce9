// The largest magnitudes of what the matrices of a model multiply: what static scales of inputs are
// made of. A backend that looks at every product on its way to another one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backend/forwarding_backend.h"
#include "core/config.h"
#include "model/weights/weights.h"

namespace fp8kv {

class InputRanges final : public ForwardingBackend {
 public:
  // `inner` and `config` outlive this.
  InputRanges(Backend& inner, const ModelConfig& config);

  void linear(const ConstTensorView& x, std::span<const Projection> projections) override;
  void experts(const ConstTensorView& x, const Routed& routed, const ExpertMatrices& matrices,
               const TensorView& out) override;
  // Here the gate of a shared expert is of what its down multiplies; runtimes have it after that.
  void gate_rows(const TensorView& x, const ConstTensorView& gates) override;

  // All products of layer `index` were given since the last call. `latent_amax`: of the latents,
  // for layers of latent attention; what runtimes multiply its matrices for each head by. Throws
  // where something was NaN or infinite, naming the tensor that multiplied it.
  void end_layer(int64_t index, const LayerWeights& weights, std::optional<float> latent_amax);

  // By the name of the weight, of each layer that has ended; of fused and of single experts'
  // tensors too. An expert that no token came to has the largest of its layer's.
  const std::map<std::string, float>& amax() const { return amax_; }

 private:
  // What is multiplied by the matrix there, or what is there before it is gated, as bits; see
  // Backend::amax.
  TensorView slot_of(const std::byte* matrix);
  std::vector<uint64_t> take(const Tensor& counters);
  void note_layer(int64_t index, const LayerWeights& weights, std::optional<float> latent_amax,
                  const std::vector<uint64_t>& inputs, const std::vector<uint64_t>& downs);

  const ModelConfig& config_;
  Tensor slots_;                             // [kMostSlots] u64
  Tensor downs_;                             // [experts] u64; of models with experts
  std::map<const std::byte*, size_t> slot_;  // by where the matrix lies, or what is gated
  size_t used_ = 0;
  std::map<std::string, float> amax_;
};

}  // namespace fp8kv
