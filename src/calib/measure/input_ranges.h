// Records the largest magnitude of every matrix input, for static input scales. This backend
// inspects each product and forwards it to another backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backend/forwarding_backend.h"
#include "core/model/config.h"
#include "model/weights/weights.h"

namespace fp8kv {

class InputRanges final : public ForwardingBackend {
 public:
  // `inner` and `config` outlive this.
  InputRanges(Backend& inner, const ModelConfig& config);

  void linear(const ConstTensorView& x, std::span<const Projection> projections) override;
  void experts(const ConstTensorView& x, const Routed& routed, const ExpertMatrices& matrices,
               const TensorView& out) override;
  // fp8kv gates the input of a shared expert's down matrix; runtimes gate its output. So this
  // records the rows before they are gated.
  void gate_rows(const TensorView& x, const ConstTensorView& gates) override;

  // Call it after all products of layer `index`. `latent_amax`: the amax of the latents in latent
  // attention, which runtimes multiply by the matrices of each head. Throws if an input was NaN or
  // infinite, naming the tensor it was multiplied by.
  void end_layer(int64_t index, const LayerWeights& weights, std::optional<float> latent_amax);

  // The amax of every finished layer's inputs, by the name of the weight. Fused tensors and single
  // experts' tensors have entries too. An expert without tokens gets the largest amax of its layer.
  const std::map<std::string, float>& input_amax() const { return amax_; }

 private:
  // The amax slot for the input of the matrix at this address, or for the rows there before they
  // are gated. Holds float bits; see Backend::amax.
  TensorView slot_of(const std::byte* matrix);
  std::vector<uint64_t> take(const Tensor& counters);
  void note_layer(int64_t index, const LayerWeights& weights, std::optional<float> latent_amax,
                  const std::vector<uint64_t>& inputs, const std::vector<uint64_t>& downs);

  const ModelConfig& config_;
  Tensor slots_;                             // [kMostSlots] u64
  Tensor downs_;                             // [experts] u64, for models with experts
  std::map<const std::byte*, size_t> slot_;  // by address of the matrix, or of the gated rows
  size_t used_ = 0;
  std::map<std::string, float> amax_;
};

}  // namespace fp8kv
