// AMMO's checkpoint as a store of scales: *_rank0.npz, ..., and a JSON file that describes the
// model.
#pragma once

#include <filesystem>
#include <memory>

#include "scales/read/stores/scale_store.h"

namespace fp8kv {

bool is_npz_folder(const std::filesystem::path& folder);
std::unique_ptr<ScaleStore> open_npz_folder(const std::filesystem::path& folder);

}  // namespace fp8kv
