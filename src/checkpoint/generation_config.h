// Reads the defaults for generation from a model folder's generation_config.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace fp8kv {

// The ids of the end tokens; nullopt if the file is missing or does not name any.
std::optional<std::vector<int32_t>> read_eos_ids(const std::filesystem::path& folder);

struct GenerationConfig {
  // These three come from the file alone, and stay empty unless it has "do_sample": true.
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<int32_t> top_k;
  bool do_sample = false;
  std::optional<int64_t> max_new_tokens;  // read with and without do_sample
  std::optional<int64_t> max_length;      // tokens of the prompt and of what follows
  // Options that would change the text but are not supported: "repetition_penalty 1.05".
  std::vector<std::string> unsupported;
};

// Returns an empty config if the folder has no such file. Throws, naming the key, for a value of a
// wrong type or out of range.
GenerationConfig read_generation_config(const std::filesystem::path& folder);

}  // namespace fp8kv
