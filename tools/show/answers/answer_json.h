// The parts of a JSON record of `run` that hold log-probabilities, see docs/json.md.
#pragma once

#include <span>
#include <vector>

#include "generate/log_probabilities.h"
#include "generate/scorer.h"
#include "inputs/prompts/prompts.h"
#include "json/json.h"
#include "text/tokenizer.h"

namespace fp8kv {

// The member "logprobs", as in OpenAI's chat completions, with each token's id. Without a tokenizer
// (nullptr) tokens have no text.
void add_logprobs(JsonWriter& json, std::span<const TokenLogProbabilities> tokens,
                  const Tokenizer* tokenizer);

// Writes the member "continuations": the prompt's continuations with their scores.
void add_continuations(JsonWriter& json, const Prompt& prompt,
                       std::span<const ContinuationScore> scores, const Tokenizer* tokenizer);

}  // namespace fp8kv
