// A Hugging Face model folder as a store of scales.
#pragma once

#include <filesystem>
#include <memory>

#include "checkpoint/checkpoint.h"
#include "scales/read/stores/scale_store.h"

namespace fp8kv {

std::unique_ptr<ScaleStore> open_model_folder(const std::filesystem::path& folder);
// REQUIRES the checkpoint to outlive the store.
std::unique_ptr<ScaleStore> store_of(const Checkpoint& checkpoint);

}  // namespace fp8kv
