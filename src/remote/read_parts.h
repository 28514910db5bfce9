// Reads the parts of a remote model that scales need, in as few requests as possible.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "remote/remote_reader.h"

namespace fp8kv {

// Names the parts of shards that are needed, from a folder with config.json, the index and the
// headers of all shards.
using NeededParts = std::function<std::vector<FilePart>(const std::filesystem::path& folder)>;

// Reads config.json, the index, the headers of all shards and the parts named by `needed`. The
// shards are model.safetensors, the files of the index, or rank0.safetensors, ... of TensorRT-LLM.
RemoteReader parts_reader(NeededParts needed);

}  // namespace fp8kv
