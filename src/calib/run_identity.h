// Everything that decides the numbers of a calibration, as named texts. Two runs with equal texts
// count the same, and a message can name the text that differs. Policies are not included: they
// apply later, to what was counted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "checkpoint/checkpoint.h"
#include "core/model/config.h"

namespace fp8kv {

struct RunPart {
  std::string key;    // "config.rope_theta"
  std::string what;   // for messages: "rope_theta in the model's config"
  std::string value;  // "500000"
};

struct RunIdentity {
  std::vector<RunPart> parts;  // each key once
};

// The identity has the version, the values read from config.json, samples of the weights, and the
// windows. It has each shard's name, size, time of change, inode and header. It names the backend
// with what its arithmetic depends on: a CPU's instruction set, a GPU's libraries.
RunIdentity run_identity(const std::string& tool_version, const Checkpoint& checkpoint,
                         const ModelConfig& config,
                         const std::vector<std::vector<int32_t>>& windows, const Backend& backend);

// SHA-256 of the token ids and the window ends. Covers data, --samples, --seq-len and --shard.
std::string windows_digest(const std::vector<std::vector<int32_t>>& windows);

// The backend's description without the number of threads and the memory size, which change no bit
// of a result.
std::string device_identity(const std::string& description);

}  // namespace fp8kv
