#include "model/weights/place_expert.h"

namespace fp8kv {

size_t expert_matrix(TensorRole role) {
  switch (role) {
    case TensorRole::expert_gate:
    case TensorRole::fixed_gate:
      return 0;
    case TensorRole::expert_up:
    case TensorRole::fixed_up:
      return 1;
    case TensorRole::expert_down:
    case TensorRole::fixed_down:
      return 2;
    default:
      return 3;
  }
}

namespace {

// The numbers of the experts that a tensor of several holds. The fixed ones are the last.
struct Numbers {
  size_t first = 0;
  size_t count = 0;
};

Numbers numbers_in(const ExpertTensorPart& from) {
  const auto count = static_cast<size_t>(from.tensor.shape[0]);
  const TensorRole role = from.part.role;
  const bool fixed = role >= TensorRole::fixed_gate && role <= TensorRole::fixed_down;
  return {fixed ? static_cast<size_t>(from.n_experts) - count : 0, count};
}

}  // namespace

LayerExperts& experts_of(LayerWeights& layer) {
  if (!layer.experts) layer.experts.emplace();
  return *layer.experts;
}

void place_expert(const ExpertTensorPart& from, const ConstTensorView& view,
                  const WeightSource& source, LayerExperts& out) {
  const auto& [tensor, part, n_experts] = from;
  const size_t matrix = expert_matrix(part.role);
  out.each.resize(static_cast<size_t>(n_experts));
  if (tensor.expert >= 0) {
    out.each[static_cast<size_t>(tensor.expert)][matrix] = part_of(tensor, part, view, source);
    return;
  }
  const auto [first, count] = numbers_in(from);
  const size_t bytes = view.bytes() / count;
  for (size_t i = 0; i < count; ++i) {
    const ConstTensorView one(view.data + i * bytes, view.dtype,
                              Shape{view.shape[1], view.shape[2]});
    out.each[first + i][matrix] = part_of(tensor, part, one, source);
  }
}

void place_expert_codes(const ExpertTensorPart& from, DType dtype, const QuantisedMatrix& codes,
                        LayerExperts& out) {
  const size_t matrix = expert_matrix(from.part.role);
  const auto count = static_cast<size_t>(from.n_experts);
  out.each.resize(count);
  out.codes.resize(3 * count);
  const auto put = [&](size_t expert, int64_t in_tensor) {
    out.each[expert][matrix] = {nullptr, dtype, Shape{from.part.rows, codes.columns}};
    out.codes[matrix * count + expert] = part_of_codes(from.tensor, from.part, in_tensor, codes);
  };
  if (from.tensor.expert >= 0) return put(static_cast<size_t>(from.tensor.expert), 0);
  const Numbers numbers = numbers_in(from);
  for (size_t i = 0; i < numbers.count; ++i) put(numbers.first + i, static_cast<int64_t>(i));
}

void place_expert_bias(TensorRole role, const ConstTensorView& view, LayerExperts& out) {
  const size_t matrix = expert_matrix(role);
  if (!out.biases) out.biases.emplace();
  ExpertBiases& biases = *out.biases;
  (matrix == 0 ? biases.gate : matrix == 1 ? biases.up : biases.down) = view;
}

}  // namespace fp8kv
