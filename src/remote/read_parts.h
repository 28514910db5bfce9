// Fills a folder with the needed parts of a remote model, in as few requests as possible.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "remote/remote_files.h"

namespace fp8kv {

// Names the tensors of a checkpoint whose bytes are needed.
using NeededTensors = std::function<std::vector<std::string>(const Checkpoint&)>;

// Reads config.json. For a model of the hub this also pins the commit that all later calls read.
std::string read_remote_config(RemoteFiles& files);

// Writes config.json with the text `config`, the index, the headers of all shards, the tensors
// named by `needed`, and the record of these parts. Returns the total size of all shards in bytes.
// REQUIRES an empty folder.
uint64_t read_parts(RemoteFiles& files, const std::string& config,
                    const std::filesystem::path& folder, const NeededTensors& needed);

}  // namespace fp8kv
