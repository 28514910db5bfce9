// What a folder's files say that decides what a runtime does with its KV scales. Headers and
// configs only; no values, and nothing that is not in the files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "scales/rules/fact.h"

namespace fp8kv {

// What the facts are read from: a folder that is there, or one that is only planned.
struct ModelFiles {
  TensorMap tensors;  // shards do not count, nor do scales of draft layers
  Json config;
  std::optional<Json> modelopt;    // hf_quant_config.json
  std::vector<std::string> names;  // of the files in the folder itself
};

ModelFiles model_files(const Checkpoint& checkpoint);
FactSet runtime_facts(const ModelFiles& model);
// Those of a folder with these `facts`, if the scales of all layers were like those of `layer`.
FactSet layer_facts(const ModelFiles& model, FactSet facts, int64_t layer);
// Of a scale file that says which model type it is for, or does not.
FactSet scale_file_facts(const std::string& model_type);

}  // namespace fp8kv
