// A model folder loaded by the runtime that somebody has installed: their Python is run with the
// script that this program carries. Writes nothing.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/log.h"
#include "scales/loaded/loaded_scales.h"

namespace fp8kv {

struct LoadRequest {
  std::string python;  // a path, or a name that is found in PATH
  std::filesystem::path folder;
  std::string runtime;         // "vllm", "sglang" or "transformers"; "": the one it has
  std::string kv_cache_dtype;  // what the runtime is asked for; "": "auto", and if need be "fp8"
  std::vector<std::string> tensors;  // the names of the KV scales in the folder
  double time_limit_s = 0;
};

// Throws for a Python that cannot be started, that crashes or needs longer (its last lines go to
// the log), and what parse_loaded_scales throws. A loader that stops with an error is an answer.
LoadedScales load_with_python(const LoadRequest& request, Log& log);

}  // namespace fp8kv
