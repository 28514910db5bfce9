// Fills a folder with the parts of a remote model that are needed, with as few requests as can be.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "remote/remote_files.h"

namespace fp8kv {

// The tensors of a checkpoint whose bytes are needed.
using NeededTensors = std::function<std::vector<std::string>(const Checkpoint&)>;

// Reads config.json and, of a hub's model, the commit that all later calls read.
std::string read_remote_config(RemoteFiles& files);

// Writes config.json with this text, the index, the headers of all shards and the tensors that
// `needed` names, and the record of what is there. Returns the bytes of all shards.
// REQUIRES an empty folder.
uint64_t read_parts(RemoteFiles& files, const std::string& config,
                    const std::filesystem::path& folder, const NeededTensors& needed);

}  // namespace fp8kv
