// What a tokenizer consists of, whichever files say it.
#pragma once

#include <filesystem>

#include "json/json.h"
#include "text/added_tokens.h"
#include "text/models/token_model.h"
#include "text/steps/decoder.h"
#include "text/steps/normalizer.h"
#include "text/steps/pretokenizer.h"
#include "text/steps/template.h"

namespace fp8kv {

struct TokenizerParts {
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  TokenModel model;
  AddedTokens added;
  Template affixes;
  Decoder decoder;
};

// Each throws with the file and the part for anything that is not implemented exactly: never an
// approximation.

// From a tokenizer.json.
TokenizerParts parts_from_json(const Json& json);
// From SentencePiece's tokenizer.model in `folder`, and the tokenizer_config.json beside it.
TokenizerParts parts_from_pieces(const std::filesystem::path& folder);
// From Mistral's tekken.json.
TokenizerParts parts_from_tekken(const Json& json);
// From vocab.json and merges.txt in `folder`, and the tokenizer_config.json beside them.
TokenizerParts parts_from_merges(const std::filesystem::path& folder);

}  // namespace fp8kv
