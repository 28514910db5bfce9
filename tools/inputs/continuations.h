// Continuations that a record of `run` gives, which are scored in place of an answer. Reads them;
// computes nothing.
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
  Alternatives alternatives;       // one for each; all have the prompt's length as `begin`
};

// Reads strings behind a text. Prompt and continuation are encoded as one text and parted where the
// prompt alone would end, as `eval --task choices` does it. Throws, naming the place, for anything
// else than a list of strings, and for one that adds no token.
GivenContinuations text_continuations(const Json& list, const std::string& prompt,
                                      const Tokenizer& tokenizer);

// Reads lists of token ids behind token ids. Without a tokenizer (nullptr) they have no text.
GivenContinuations id_continuations(const Json& list, const std::vector<int32_t>& prompt,
                                    const Tokenizer* tokenizer, int64_t vocab_size);

}  // namespace fp8kv
