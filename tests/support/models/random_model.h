// A model folder of any architecture with random F32 weights. For tests of how the program handles
// a model, not of what it computes.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/rng.h"
#include "config/families/tensor_table.h"
#include "config/parse_model_config.h"
#include "json/json.h"
#include "support/backends/cpu.h"
#include "support/models/tiny_checkpoint.h"

namespace fp8kv::test {

// All tensors of a model with this config.
inline std::vector<ModelTensor> tensors_of(const ModelConfig& config) {
  std::vector<ModelTensor> tensors = outer_tensors(config);
  for (int64_t layer = 0; layer < config.n_layers(); ++layer) {
    for (ModelTensor& each : layer_tensors(config, layer)) tensors.push_back(std::move(each));
  }
  return tensors;
}

inline void write_random_model(const std::filesystem::path& folder, const std::string& config) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "config.json") << config;
  Rng rng(4);
  std::vector<TinyTensor> tensors;
  for (const ModelTensor& each :
       tensors_of(parse_model_config(Json::parse(config, "config.json")))) {
    std::vector<float> values = random_floats(rng, each.shape.elements());
    for (float& value : values) value = each.shape.rank() == 1 ? 1 + value / 3 : value / 4;
    tensors.push_back({each.name, each.shape, std::move(values)});
  }
  write_tiny_weights(folder, tensors, DType::f32);
}

}  // namespace fp8kv::test
