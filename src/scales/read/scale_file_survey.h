// Surveys a scale file like any other source of scales.
#pragma once

#include <filesystem>

#include "scales/read/found_scales.h"

namespace fp8kv {

// Throws what read_scale_file throws. Each number appears as a tensor without a checkpoint:
// "fp8kv.k_scale[3]".
FoundScales survey_scale_file(const std::filesystem::path& path);

}  // namespace fp8kv
