// Scales from a scale file, or from a checkpoint of any dialect.
#pragma once

#include <filesystem>
#include <optional>
#include <span>

#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "core/model/config.h"
#include "scales/read/find_scales.h"

namespace fp8kv {

// All functions here log grave diagnoses (Diagnosis::grave).

// Logs what the source has but does not use. Throws if there are no usable scales.
KvScales load_scales(const std::filesystem::path& path, Log& log);

// The flag that accepts scales of another model.
inline constexpr const char* kAcceptForeign = "--accept-foreign-scales";

// Loads scales for a model that will run with them. Throws if they were made for another model,
// unless `accept_foreign`. Accepted foreign scales are marked in their provenance.
KvScales load_scales_for(const std::filesystem::path& path, bool accept_foreign,
                         const Checkpoint& checkpoint, const ModelConfig& config, Log& log);

// The scales in the checkpoint, checked against the model; nullopt if there are none.
std::optional<KvScales> scales_carried_by(const Checkpoint& checkpoint, const ModelConfig& config,
                                          Log& log);

// A scale file for merge, which may be one shard. Throws the errors of read_scale_file, also for
// any other kind of file.
KvScales load_scale_file(const std::filesystem::path& path, Log& log);

// Loads scales and logs all diagnoses, even if the scales cannot be used. Throws like load_scales.
FoundScales load_diagnosed(const std::filesystem::path& path, Log& log);

// Logs each diagnosis on its own line: a note if it is harmless, else a warning.
void say_diagnoses(const std::filesystem::path& source, std::span<const Diagnosis> diagnoses,
                   Log& log);

}  // namespace fp8kv
