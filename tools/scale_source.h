// Scales from whatever carries them: a scale file or a checkpoint.
#pragma once

#include <filesystem>

#include "core/config.h"
#include "core/scales.h"
#include "io/checkpoint.h"

namespace fp8kv {

// A folder is read as a checkpoint, a file as a scale file. Throws when there are no scales.
KvScales load_scales(const std::filesystem::path& path);

// Throws unless the scales fit the model: layers, heads, and the fingerprint where they have one.
void check_made_for(const KvScales& scales, const Checkpoint& checkpoint, const ModelConfig& config,
                    const std::string& source);

}  // namespace fp8kv
