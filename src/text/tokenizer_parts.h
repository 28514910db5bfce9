// The parts of a tokenizer, from whichever files.
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

// The readers. Each throws with the file and the part for anything it does not implement exactly:
// never an approximation.

// Reads a tokenizer.json.
TokenizerParts parts_from_json(const Json& json);
// Reads SentencePiece's tokenizer.model in `folder`, and the tokenizer_config.json beside it.
TokenizerParts parts_from_pieces(const std::filesystem::path& folder);
// Reads Mistral's tekken.json.
TokenizerParts parts_from_tekken(const Json& json);
// Reads vocab.json and merges.txt in `folder`, and the tokenizer_config.json beside them.
TokenizerParts parts_from_merges(const std::filesystem::path& folder);

}  // namespace fp8kv
