// What a path is that scales may be read from, and a folder as the store of scales that it is.
#pragma once

#include <filesystem>
#include <memory>

#include "scales/read/scale_store.h"

namespace fp8kv {

enum class SourceKind {
  missing,
  scale_folder,  // of TensorRT-LLM or AMMO: it carries scales, but no model to run
  model_folder,  // any other folder: of Hugging Face's form, or of none
  safetensors,   // a single file of tensors, by its name
  scale_file     // any other file
};
SourceKind source_kind(const std::filesystem::path& path);

// Any folder that may carry scales: of TensorRT-LLM, of AMMO, or of Hugging Face's form. Throws
// what Checkpoint::open does for one that is none of these.
std::unique_ptr<ScaleStore> open_store(const std::filesystem::path& folder);

}  // namespace fp8kv
