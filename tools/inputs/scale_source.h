// Scales from whatever carries them: a scale file or a checkpoint of any dialect.
#pragma once

#include <filesystem>
#include <optional>
#include <span>

#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "core/config.h"
#include "scales/read/find_scales.h"

namespace fp8kv {

// All of these say on `log` what is grave about the scales (Diagnosis::grave).

// What was there and not used is said on `log`. Throws when there are no scales that can be used.
KvScales load_scales(const std::filesystem::path& path, Log& log);

// The flag that takes scales of another model.
inline constexpr const char* kAcceptForeign = "--accept-foreign-scales";

// The same for a model that will run with them. Throws too when they are not made for it, unless
// `accept_foreign`; they then say so in their provenance.
KvScales load_scales_for(const std::filesystem::path& path, bool accept_foreign,
                         const Checkpoint& checkpoint, const ModelConfig& config, Log& log);

// Those that a model carries, checked against it; nullopt when there are none.
std::optional<KvScales> scales_carried_by(const Checkpoint& checkpoint, const ModelConfig& config,
                                          Log& log);

// A scale file, as merge takes it: any shard, and nothing else than a scale file. Throws as
// read_scale_file does.
KvScales load_scale_file(const std::filesystem::path& path, Log& log);

// As load_scales, with what is remarkable about them, which is said on `log` too, also when they
// cannot be used.
FoundScales load_diagnosed(const std::filesystem::path& path, Log& log);

// Each on a line of its own: a note where it is harmless, else a warning.
void say_diagnoses(const std::filesystem::path& source, std::span<const Diagnosis> diagnoses,
                   Log& log);

}  // namespace fp8kv
