// The scales that a runtime had in memory after its loader was done, as load_scales.py tells them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fp8kv {

// The attention of one layer. Empty scales: that module has none.
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
  std::optional<bool> turns_on;  // an FP8 cache without being asked; nullopt: not tried
  std::string failure;           // one line: what the loader stopped with; "": it loaded
  std::vector<LoadedAttention> modules;
};

// Text of another program as a part of one line: blanks for what moves a cursor, cut at 300 bytes.
std::string one_line(std::string_view text);

// "vLLM" for "vllm"; any other name as it is.
std::string runtime_title(std::string_view runtime);

// Throws, with a way out, for what the script refuses: no such runtime, several, no memory; and for
// a text that is no answer of it.
LoadedScales parse_loaded_scales(std::string_view answer);

}  // namespace fp8kv
