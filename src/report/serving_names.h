// The names used in commands that serve a model.
#pragma once

#include <filesystem>
#include <string>

#include "core/cache/kv_format.h"
#include "core/scales/copy_fate.h"

namespace fp8kv {

// Each name is quoted for a shell.
struct ServingNames {
  std::string model = "MODEL";
  std::string scales = "SCALES.json";
  std::string copy = "MODEL-fp8";  // the folder that inject makes
  bool drafter = false;            // no command measures its loss
  CopyFate vllm = {};
};

// `scales` is the path of the scale file. `model` may be "" if unknown. `format`: of the scales.
ServingNames serving_names(const std::filesystem::path& scales, const std::filesystem::path& model,
                           KvFormat format);

// "Llama-3" for "models/Llama-3/", and for the hub cache's "models--org--Llama-3/snapshots/0a1b".
// "" if the path has no name of its own.
std::string model_name(const std::filesystem::path& model);

}  // namespace fp8kv
