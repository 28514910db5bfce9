// The scales in a runtime's memory after its loader finished, as the script reports them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fp8kv {

// The attention of one layer. Empty scales mean that the module has none.
struct LoadedAttention {
  std::string module;  // "model.layers.3.self_attn.attn"
  int64_t layer = 0;
  std::vector<float> k;
  std::vector<float> v;
  std::vector<float> q = {};
};

struct LoadedScales {
  std::string runtime;  // "vllm", "sglang" or "transformers"
  std::string version;
  std::string python_version;
  std::optional<bool> turns_on;  // whether "auto" gives an FP8 or NVFP4 cache; nullopt: not tried
  std::string cache;             // the dtype of that cache: "nvfp4"; "" if there is none
  std::string failure;           // one line: the error of the loader; "": it loaded
  std::vector<LoadedAttention> modules;
};

// Text of another program on one line: control characters become blanks, cut at 300 bytes.
std::string one_line(std::string_view text);

// Returns "vLLM" for "vllm", and any other name unchanged.
std::string runtime_title(std::string_view runtime);

// Throws, with a way out, when the script refuses: no such runtime, several of them, or no memory.
// Throws too if the text is no answer of the script.
LoadedScales parse_loaded_scales(std::string_view answer);

}  // namespace fp8kv
