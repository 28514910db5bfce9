// Reads the facts that decide what a runtime does with a folder's KV scales. Looks at headers and
// configs only, never at values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "scales/rules/tables/fact.h"

namespace fp8kv {

// The source of the facts: an existing folder, or a planned one.
struct ModelFiles {
  TensorMap tensors;  // without scales of draft layers; the shard numbers are not used
  Json config;
  std::optional<Json> modelopt;    // hf_quant_config.json
  std::vector<std::string> names;  // the names of the files directly in the folder
};

ModelFiles model_files(const Checkpoint& checkpoint);
FactSet runtime_facts(const ModelFiles& model);
// The facts of the folder if every layer had the scales of `layer`. `facts`: those of the folder.
FactSet layer_facts(const ModelFiles& model, FactSet facts, int64_t layer);
// The facts of a scale file. `model_type` is "" if the file does not say it.
FactSet scale_file_facts(const std::string& model_type);

}  // namespace fp8kv
