// Reads the continuations in a record of `run`, which are scored instead of generating an answer.
// Computes no scores.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "generate/scorer.h"
#include "json/json.h"
#include "text/tokenizer.h"

namespace fp8kv {

struct GivenContinuations {
  std::vector<std::string> texts;  // "" without a tokenizer
  Alternatives alternatives;       // one per text, with a common `begin`
};

// Reads strings that follow a text. Encodes prompt and continuation as one text and splits it where
// the prompt alone would end, like `eval --task choices`. Throws unless the value is a list of
// strings that each add a token. The error names the place.
GivenContinuations text_continuations(const Json& list, const std::string& prompt,
                                      const Tokenizer& tokenizer);

// Reads lists of token ids that follow token ids. Without a tokenizer (nullptr) `texts` are "".
GivenContinuations id_continuations(const Json& list, const std::vector<int32_t>& prompt,
                                    const Tokenizer* tokenizer, int64_t vocab_size);

}  // namespace fp8kv
