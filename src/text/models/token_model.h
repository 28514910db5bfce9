// A tokenizer's model of any kind. It turns the words of a text into ids.
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
  // Reads the "model" of a tokenizer.json. `byte_spelled`: words come from a ByteLevel
  // pre-tokenizer. Throws for an unsupported type, and for broken members.
  static TokenModel from_json(const Json& model, bool byte_spelled);

  const Vocabulary& vocabulary() const;

  // Whether words are passed as raw bytes; see Bpe.
  bool takes_raw_bytes() const;

  struct Scratch {
    Bpe::Scratch bpe;
    Unigram::Scratch unigram;
  };
  // Appends the ids of `word`. REQUIRES a non-empty word. Throws if a character needs the unknown
  // token and there is none.
  void encode(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids) const;

 private:
  std::variant<Bpe, Unigram> model_;
};

}  // namespace fp8kv
