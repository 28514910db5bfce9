// The output of 'extract --list': every scale tensor of a checkpoint or file.
#pragma once

#include <filesystem>
#include <string>

#include "scales/read/find_scales.h"

namespace fp8kv {

std::string list_text(const FoundScales& found);
std::string list_json(const std::filesystem::path& source, const FoundScales& found);

}  // namespace fp8kv
