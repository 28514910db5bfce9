// The tensors of a safetensors file.
#pragma once

#include <filesystem>
#include <string>

#include "formats/safetensors.h"

namespace fp8kv {

std::string tensor_list_text(const SafetensorsHeader& header);
std::string tensor_list_json(const std::filesystem::path& path, const SafetensorsHeader& header);

}  // namespace fp8kv
