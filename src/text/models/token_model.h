// The model of a tokenizer, of whichever kind: what makes ids of the words of a text.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "json/json.h"
#include "text/models/bpe.h"
#include "text/models/unigram.h"

namespace fp8kv {

class TokenModel {
 public:
  explicit TokenModel(Bpe model) : model_(std::move(model)) {}
  explicit TokenModel(Unigram model) : model_(std::move(model)) {}
  // From the "model" of a tokenizer.json. `byte_spelled`: words come from a ByteLevel
  // pre-tokenizer. Throws for a type that is not implemented, and for broken members.
  static TokenModel from_json(const Json& model, bool byte_spelled);

  const Vocabulary& vocabulary() const;

  // True when words are to be given as their bytes, see Bpe.
  bool takes_raw_bytes() const;

  struct Scratch {
    Bpe::Scratch bpe;
    Unigram::Scratch unigram;
  };
  // Appends the ids of `word`, which is not empty. Throws when a character needs the unknown token
  // and there is none.
  void encode(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids) const;

 private:
  std::variant<Bpe, Unigram> model_;
};

}  // namespace fp8kv
