// Writes a model folder of transformers again in Mistral's own format: params.json and
// consolidated*.safetensors.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "checkpoint/checkpoint.h"
#include "core/numbers/tensor.h"

namespace fp8kv::test {

// A tensor of Mistral's form with its own bytes.
struct OwnTensor {
  DType dtype = DType::f32;
  Shape shape;
  std::string bytes;
};
using OwnTensors = std::map<std::string, OwnTensor>;

// The tensors under Mistral's names, with the rows of rotated pairs beside each other. Stacked
// experts are taken apart, and parts for images become one tensor.
OwnTensors own_tensors(const Checkpoint& model);

// The params.json of a config.json. Yarn's magnitudes are those that the config has.
std::string params_of(const Json& config);

// How the tensors are divided among files.
enum class OwnFiles { single, numbered, indexed };

// Writes params.json and the tensors, in two shards unless `files` is single.
void write_own_form(const std::filesystem::path& folder, const std::string& params,
                    const OwnTensors& tensors, OwnFiles files = OwnFiles::single);

}  // namespace fp8kv::test
