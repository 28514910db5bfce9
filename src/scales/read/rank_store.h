// A TensorRT-LLM checkpoint as a store of scales: config.json and rank0.safetensors, ...
#pragma once

#include <filesystem>
#include <memory>

#include "scales/read/scale_store.h"

namespace fp8kv {

bool is_rank_folder(const std::filesystem::path& folder);
std::unique_ptr<ScaleStore> open_rank_folder(const std::filesystem::path& folder);

}  // namespace fp8kv
