// What a model folder's generation_config.json asks for where a prompt does not say otherwise.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace fp8kv {

// What generation stops at; nullopt where the file does not say, or is not there.
std::optional<std::vector<int32_t>> read_eos_ids(const std::filesystem::path& folder);

struct GenerationConfig {
  // Of these three only what the file says, and nothing where it does not say "do_sample": true.
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<int32_t> top_k;
  bool do_sample = false;
  std::optional<int64_t> max_new_tokens;  // with do_sample or without
  std::optional<int64_t> max_length;      // of a prompt and what follows it together
  // What would change the text and is not supported: "repetition_penalty 1.05".
  std::vector<std::string> unsupported;
};

// An empty one where the folder has no such file. Throws, naming the key, for a value of a wrong
// type or out of its range.
GenerationConfig read_generation_config(const std::filesystem::path& folder);

}  // namespace fp8kv
