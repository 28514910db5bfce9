// A JSON record of `run`: the text to continue, and its options.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "generate/requests.h"
#include "json/json.h"

namespace fp8kv {

struct PromptRecord {
  std::string text_key;  // prompt, text, messages, conversations or input_ids
  bool scored = false;   // it has continuations, and none of the options below
  int64_t max_new_tokens = 0;
  SamplingOptions sampling = {};  // the seed is separate
  std::optional<uint64_t> seed;
  std::optional<int64_t> answers;                 // the value of "n"
  std::optional<std::vector<std::string>> stops;  // none of them is empty
  std::vector<int32_t> stop_ids;
  std::optional<int64_t> logprobs;  // see Request
};

// The value of "id", a string or a number; nullopt if there is none. Throws for any other type.
std::optional<Json> record_id(const Json& record);

// Reads a record. Options that it does not give come from `defaults`. Throws for an unusable value,
// and for an unknown key that is not null. The error names the key.
PromptRecord read_prompt_record(const Json& record, const Request& defaults, int64_t vocab_size);

// The ids in `array`. Throws unless each is a token id below vocab_size.
std::vector<int32_t> ids_of(const Json& array, int64_t vocab_size);

}  // namespace fp8kv
