#include "support/models/fused_model.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "config/families/tensor_rows.h"
#include "config/families/tensor_table.h"
#include "support/models/tiny_checkpoint.h"

namespace fp8kv::test {
namespace {

std::span<const TensorRow> fused_tensors() {
  static const std::vector<TensorRow> rows = [] {
    std::vector<TensorRow> all;
    for (const TensorRow& row : llama_tensors()) {
      const TensorRole role = row.roles.front();
      if (role == TensorRole::k || role == TensorRole::v || role == TensorRole::up) continue;
      all.push_back(row);
      if (role == TensorRole::q) all.back().roles = {role, TensorRole::k, TensorRole::v};
      if (role == TensorRole::gate) all.back().roles = {role, TensorRole::up};
    }
    return all;
  }();
  return rows;
}

// Fuses the tensors of a model. A fused tensor has the name of its first part.
std::vector<TinyTensor> fused(const std::vector<TinyTensor>& tensors) {
  std::vector<TinyTensor> made;
  for (const TinyTensor& tensor : tensors) {
    const auto is_of = [&](const char* module) {
      return tensor.name.find(module) != std::string::npos;
    };
    if (!is_of("k_proj") && !is_of("v_proj") && !is_of("up_proj")) {
      made.push_back(tensor);
      continue;
    }
    // Weights join weights and biases join biases, told apart by their rank.
    auto first = std::find_if(made.rbegin(), made.rend(), [&](const TinyTensor& each) {
      const bool fits =
          each.name.find(is_of("up_proj") ? "gate_proj" : "q_proj") != std::string::npos;
      return fits && each.shape.rank() == tensor.shape.rank();
    });
    first->values.insert(first->values.end(), tensor.values.begin(), tensor.values.end());
    const int64_t rows = first->shape[0] + tensor.shape[0];
    first->shape = tensor.shape.rank() == 1 ? Shape{rows} : Shape{rows, tensor.shape[1]};
  }
  return made;
}

Checkpoint written(const std::filesystem::path& folder, const BlockModel& model) {
  std::filesystem::copy(model.folder / "model", folder);
  write_tiny_weights(folder, fused(tiny_tensors(model.tiny)), model.tiny.dtype);
  return Checkpoint::open(folder);
}

}  // namespace

FusedModel::FusedModel(const BlockModel& model)
    : config(model.config), checkpoint(written(folder / "model", model)) {
  config.tensors = fused_tensors();
}

}  // namespace fp8kv::test
