// A folder as the store of scales that it is.
#pragma once

#include <filesystem>
#include <memory>

#include "scales/read/scale_store.h"

namespace fp8kv {

// Whether a folder is of TensorRT-LLM or AMMO: it carries scales, but no model to run.
bool is_scale_folder(const std::filesystem::path& folder);

// Any folder that may carry scales: of TensorRT-LLM, of AMMO, or of Hugging Face's form. Throws
// what Checkpoint::open does for one that is none of these.
std::unique_ptr<ScaleStore> open_store(const std::filesystem::path& folder);

}  // namespace fp8kv
