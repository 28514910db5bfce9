// A TensorRT-LLM checkpoint as a store of scales: config.json and rank0.safetensors, ...
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/files/partial_folder.h"
#include "scales/read/stores/scale_store.h"

namespace fp8kv {

bool is_rank_folder(const std::filesystem::path& folder);
std::unique_ptr<ScaleStore> open_rank_folder(const std::filesystem::path& folder);
// The places of tensors in the files of all ranks.
std::vector<FilePart> rank_parts(const std::filesystem::path& folder,
                                 const std::vector<std::string>& tensors);

}  // namespace fp8kv
