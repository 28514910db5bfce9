// Loads a model folder with the runtime that somebody has installed: runs their Python with the
// embedded script. Writes nothing.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/log.h"
#include "scales/loaded/loaded_scales.h"

namespace fp8kv {

struct LoadRequest {
  std::string python;  // a path, or a name to look up in PATH
  std::filesystem::path folder;
  std::string runtime;  // "vllm", "sglang" or "transformers"; "": the one that is installed
  // The dtype that the runtime is asked for. "": first "auto", then "fp8" if needed.
  std::string kv_cache_dtype;
  std::vector<std::string> tensors;  // names of the KV scales in the folder
  double time_limit_s = 0;
};

// Throws if Python cannot be started, crashes or exceeds the time limit; its last lines then go to
// the log. Throws what parse_loaded_scales throws. A loader that stops with an error is a valid
// answer.
LoadedScales load_with_python(const LoadRequest& request, Log& log);

}  // namespace fp8kv
