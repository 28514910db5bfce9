#include "calib/measure/input_ranges.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/error.h"
#include "config/families/tensor_table.h"
#include "core/numbers/half.h"
#include "core/numbers/host_view.h"
#include "model/weights/linear_of.h"

namespace fp8kv {
namespace {

// The most products of a layer with inputs of their own.
constexpr int64_t kMostSlots = 32;

const std::byte* address_of(const ConstTensorView& weight) {
  FP8KV_ASSERT(weight.data != nullptr);  // set for models in 16 bit; quantised weights are codes
  return weight.data;
}

}  // namespace

InputRanges::InputRanges(Backend& inner, const ModelConfig& config)
    : ForwardingBackend(inner),
      config_(config),
      slots_(inner.allocate(DType::u64, Shape{kMostSlots})) {
  if (config.experts) downs_ = inner.allocate(DType::u64, Shape{config.experts->count});
}

TensorView InputRanges::slot_of(const std::byte* matrix) {
  const auto [found, is_new] = slot_.try_emplace(matrix, used_);
  if (is_new) ++used_;
  FP8KV_ASSERT(found->second < static_cast<size_t>(kMostSlots));
  return {slots_.view().data + found->second * sizeof(uint64_t), DType::u64, Shape{1}};
}

void InputRanges::linear(const ConstTensorView& x, std::span<const Projection> projections) {
  const bool was_gated = slot_.contains(x.data);
  const std::byte* first = was_gated ? x.data : address_of(projections.front().weight);
  if (!was_gated) inner().amax(x, slot_of(first));
  for (const Projection& each : projections) slot_[address_of(each.weight)] = slot_.at(first);
  inner().linear(x, projections);
}

void InputRanges::experts(const ConstTensorView& x, const Routed& routed,
                          const ExpertMatrices& matrices, const TensorView& out) {
  inner().amax(x, slot_of(matrices.addresses.data));
  ExpertMatrices observed = matrices;
  observed.down_amax = downs_.view();
  inner().experts(x, routed, observed, out);
}

void InputRanges::gate_rows(const TensorView& x, const ConstTensorView& gates) {
  inner().amax(x, slot_of(x.data));
  inner().gate_rows(x, gates);
}

// Returns the counters and clears them.
std::vector<uint64_t> InputRanges::take(const Tensor& counters) {
  std::vector<uint64_t> words(static_cast<size_t>(counters.view().shape.elements()));
  inner().download(counters.view(), std::as_writable_bytes(std::span(words)));
  const std::vector<uint64_t> zeros(words.size());
  inner().copy_in(counters.view(), host_view(zeros, counters.view().shape));
  return words;
}

void InputRanges::end_layer(int64_t index, const LayerWeights& weights,
                            std::optional<float> latent_amax) {
  const std::vector<uint64_t> inputs = take(slots_);
  const std::vector<uint64_t> downs = config_.experts ? take(downs_) : std::vector<uint64_t>();
  note_layer(index, weights, latent_amax, inputs, downs);
  slot_.clear();
  used_ = 0;
}

void InputRanges::note_layer(int64_t index, const LayerWeights& weights,
                             std::optional<float> latent_amax, const std::vector<uint64_t>& inputs,
                             const std::vector<uint64_t>& downs) {
  const auto in_slot = [&](const std::byte* weight) -> std::optional<float> {
    const auto found = slot_.find(weight);
    if (found == slot_.end()) return std::nullopt;
    return float_from_bits(static_cast<uint32_t>(inputs[found->second]));
  };
  const uint64_t most = downs.empty() ? 0 : *std::max_element(downs.begin(), downs.end());
  const auto of_expert = [&](int64_t expert) {
    const uint64_t own = expert < 0 ? 0 : downs[static_cast<size_t>(expert)];
    return float_from_bits(static_cast<uint32_t>(own == 0 ? most : own));
  };
  const auto find = [&](const ModelTensor& tensor) -> std::optional<float> {
    switch (const TensorRole role = tensor.parts.front().role) {
      case TensorRole::expert_gate:
      case TensorRole::expert_up:
        return in_slot(weights.experts.value().addresses.data);
      case TensorRole::expert_down:
        return of_expert(tensor.expert);
      case TensorRole::k_up:
      case TensorRole::v_up:
        return latent_amax;
      default:
        const Linear* linear = linear_of(weights, role);
        return linear == nullptr ? std::nullopt : in_slot(linear->weight.data);
    }
  };
  for (const ModelTensor& tensor : layer_tensors(config_, index)) {
    if (tensor.is_bias) continue;
    const std::optional<float> amax = find(tensor);
    if (!amax) continue;
    if (!std::isfinite(*amax)) {
      throw Error(
          cat("what tensor ", quote(tensor.name),
              " multiplies has values that are NaN or "
              "infinite"),
          "no scale can be made from that; look for NaN in the weights up to this layer, "
          "or for an overflow of float16 (a bfloat16 or float32 checkpoint has more range)");
    }
    amax_[tensor.name] = *amax;
  }
}

}  // namespace fp8kv
