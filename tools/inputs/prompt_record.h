// A JSON record of `run`: what it continues, and how.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "generate/generate.h"
#include "json/json.h"

namespace fp8kv {

struct PromptRecord {
  std::string text_key;  // of prompt, text, messages, conversations, input_ids: what it has
  int64_t max_new_tokens = 0;
  SamplingOptions sampling = {};  // without the seed
  std::optional<uint64_t> seed;
  std::optional<int64_t> answers;  // "n": how many
  std::vector<std::string> stops;  // strings, none of them empty
  std::vector<int32_t> stop_ids;
};

// A string or a number under "id"; nullopt where there is none. Throws for anything else.
std::optional<Json> record_id(const Json& record);

// Throws, naming the key, for what cannot be used and for every key that is not known and not null.
// What the record does not say is as in `defaults`.
PromptRecord read_prompt_record(const Json& record, const Request& defaults, int64_t vocab_size);

// Token ids below vocab_size.
std::vector<int32_t> ids_of(const Json& array, int64_t vocab_size);

}  // namespace fp8kv
