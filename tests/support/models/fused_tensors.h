// Rows for tensors that hold several roles, like Phi-3's.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "config/families/tensor_table.h"

namespace fp8kv::test {

inline const std::array<TensorRow, 4> kFusedTensors = {{
    {"layers.{}.qkv_proj", {TensorRole::q, TensorRole::k, TensorRole::v}},
    {"layers.{}.o_proj", {TensorRole::o}},
    {"layers.{}.gate_up_proj", {TensorRole::gate, TensorRole::up}},
    {"head", {TensorRole::lm_head}},
}};

inline std::vector<std::string> names_of(const std::vector<ModelTensor>& tensors) {
  std::vector<std::string> names;
  for (const ModelTensor& tensor : tensors) names.push_back(tensor.name);
  return names;
}

}  // namespace fp8kv::test
