// A tiny model whose router decides by digits that BF16 does not have.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "support/models/tiny_config.h"

namespace fp8kv::test {

// Two experts, of which each token takes one. The second row of a router is the first one times
// 1 + 2^-12: in F32 the sign of a logit decides, in BF16 both logits are equal. Weights are in
// `dtype`. The routers of layers from `first_f32` on are in F32.
inline void write_close_routers(const std::filesystem::path& folder, DType dtype,
                                size_t first_f32) {
  TinyConfig config = tiny_config("Qwen3MoeForCausalLM");
  config.dtype = dtype;
  config.dense_layers = {};
  config.experts = {.count = 2, .hidden_dim = 20, .routing = {.per_token = 1, .normalise = true}};
  write_tiny_checkpoint(folder, config);
  std::vector<TinyTensor> tensors = tiny_tensors(config);
  size_t layer = 0;
  for (TinyTensor& tensor : tensors) {
    if (!tensor.name.ends_with("mlp.gate.weight")) continue;
    const size_t dim = tensor.values.size() / 2;
    for (size_t i = 0; i < dim; ++i) tensor.values[dim + i] = tensor.values[i] * (1 + 0x1p-12f);
    if (layer++ >= first_f32) tensor.dtype = DType::f32;
  }
  write_tiny_weights(folder, tensors, config.dtype);
}

}  // namespace fp8kv::test
