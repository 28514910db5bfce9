// The kinds of paths that scales are read from, and folders opened as stores of scales.
#pragma once

#include <filesystem>
#include <memory>

#include "scales/read/stores/scale_store.h"

namespace fp8kv {

enum class SourceKind {
  missing,
  scale_folder,  // TensorRT-LLM or AMMO: it carries scales, but no model to run
  model_folder,  // any other folder, in Hugging Face's form or not
  safetensors,   // a single tensor file, by its name
  scale_file     // any other file
};
SourceKind source_kind(const std::filesystem::path& path);

// Opens a folder of TensorRT-LLM, of AMMO, or in Hugging Face's form. For any other folder, throws
// what Checkpoint::open throws.
std::unique_ptr<ScaleStore> open_store(const std::filesystem::path& folder);

}  // namespace fp8kv
