// Everything that decides the numbers of a calibration, as named texts: two runs with the same ones
// count the same, and where they differ it can be said in what. Policies are not a part of it: they
// are applied to what was counted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "checkpoint/checkpoint.h"
#include "core/config.h"

namespace fp8kv {

struct RunPart {
  std::string key;    // "config.rope_theta"
  std::string what;   // for messages: "rope_theta in the model's config"
  std::string value;  // "500000"
};

struct RunIdentity {
  std::vector<RunPart> parts;  // each key once
};

// The version, what was understood of config.json, samples of the weights, of every shard its name,
// size, time of change, inode and header, the windows, and the backend with what it computes by:
// the instruction set of a CPU, the libraries of a GPU.
RunIdentity run_identity(const std::string& tool_version, const Checkpoint& checkpoint,
                         const ModelConfig& config,
                         const std::vector<std::vector<int32_t>>& windows, const Backend& backend);

// SHA-256 of the ids and of where each window ends: data, --samples, --seq-len and --shard in one.
std::string windows_digest(const std::vector<std::vector<int32_t>>& windows);

// The backend's description without the number of threads and the size of its memory, which change
// no bit of a result.
std::string device_identity(const std::string& description);

}  // namespace fp8kv
