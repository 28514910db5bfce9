// Scales from whatever carries them: a scale file or a checkpoint.
#pragma once

#include <filesystem>

#include "base/log.h"
#include "core/scales.h"

namespace fp8kv {

// A folder is read as a checkpoint, a file as a scale file. What was there and not used is said on
// `log`. Throws when there are no scales.
KvScales load_scales(const std::filesystem::path& path, Log& log);

}  // namespace fp8kv
