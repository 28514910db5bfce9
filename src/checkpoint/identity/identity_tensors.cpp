#include "checkpoint/identity/identity_tensors.h"

#include <algorithm>
#include <utility>

#include "core/model/tensor_roles.h"

namespace fp8kv {
namespace {

// Offset and length in bytes of each matrix of one expert. In layouts with transposed or
// interleaved rows the matrices count as one.
std::vector<std::pair<uint64_t, uint64_t>> places_of(const ModelTensor& tensor, uint64_t bytes) {
  if (tensor.layout != TensorLayout::rows) return {{0, bytes}};
  const TensorPart& last = tensor.parts.back();
  const uint64_t row_bytes = bytes / static_cast<uint64_t>(last.first_row + last.rows);
  std::vector<std::pair<uint64_t, uint64_t>> places;
  for (const TensorPart& part : tensor.parts) {
    places.push_back({static_cast<uint64_t>(part.first_row) * row_bytes,
                      static_cast<uint64_t>(part.rows) * row_bytes});
  }
  return places;
}

}  // namespace

bool is_of_experts(const ModelTensor& tensor) {
  return role_row(tensor.parts.front().role).part == RolePart::expert;
}

bool makes_kv(const ModelTensor& tensor) {
  return std::any_of(tensor.parts.begin(), tensor.parts.end(),
                     [](const TensorPart& part) { return role_row(part.role).makes_kv; });
}

bool decides_caches(const ModelConfig& config, int64_t index, const ModelTensor& tensor) {
  const int64_t last = std::max<int64_t>(config.layers_to_last_cache(), 1) - 1;
  return index < last || (index == last && makes_kv(tensor));
}

int64_t sampled_experts_of(const ExpertsConfig& experts) {
  return experts.count - experts.fixed;
}

std::vector<std::vector<ExpertPart>> expert_parts(const ModelWeights& weights,
                                                  const std::vector<ModelTensor>& tensors,
                                                  int64_t n_experts) {
  std::vector<std::vector<ExpertPart>> parts(static_cast<size_t>(n_experts));
  for (const ModelTensor& tensor : tensors) {
    if (!is_of_experts(tensor)) continue;
    const Weight weight = weights.at(tensor);
    const uint64_t bytes = weight.bytes();
    if (tensor.expert >= 0) {
      parts[static_cast<size_t>(tensor.expert)].push_back({weight, 0, bytes});
      continue;
    }
    const uint64_t of_one = bytes / parts.size();
    for (size_t i = 0; i < parts.size(); ++i) {
      for (const auto& [first, size] : places_of(tensor, of_one)) {
        parts[i].push_back({weight, i * of_one + first, size});
      }
    }
  }
  return parts;
}

}  // namespace fp8kv
