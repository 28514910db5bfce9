// Tokens beside those of the model, such as the "added_tokens" of a tokenizer.json: found in the
// text before anything is cut or merged.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "json/json.h"
#include "text/models/byte_trie.h"
#include "text/models/vocabulary.h"
#include "text/steps/normalizer.h"

namespace fp8kv {

// Bytes of a text.
struct TextSpan {
  size_t begin;
  size_t end;
};

// Tokens that are not looked for in parts of a text: what users type is no command.
struct TokenGuard {
  std::span<const TextSpan> closed;  // in order, apart from each other
  const std::unordered_set<int32_t>& control;
  // Whether a closed part spells a control token that is looked for after normalisation. Where such
  // a token then stands is not known any more, so that they are all looked for before it.
  bool by_content = false;

  bool is_closed(size_t begin, size_t end) const;
};

class AddedTokens {
 public:
  struct Token {
    int32_t id = Vocabulary::kNone;
    std::string content;
    bool single_word = false;
    bool lstrip = false;
    bool rstrip = false;
    bool normalized = false;
    bool special = false;
    bool in_text = true;  // false: text never becomes it
  };
  // Those whose ids are known. REQUIRES that no two have the same content.
  explicit AddedTokens(std::vector<Token> tokens);
  // Throws for ids that the tokenizers library would give to other tokens, and for two tokens that
  // look the same in the text.
  AddedTokens(const std::optional<Json>& tokens, const Vocabulary& vocabulary,
              const Normalizer& normalizer);

  // Some text, or a token in it.
  struct Piece {
    size_t begin;
    size_t end;
    int32_t id;  // Vocabulary::kNone: text
  };
  // Cuts `text` at the tokens that are looked for before (`normalized` false) or after
  // normalisation. Leftmost first, the longest of those that begin together; no piece is empty.
  void cut(std::string_view text, bool normalized, std::vector<Piece>& pieces,
           const TokenGuard* guard = nullptr) const;
  bool any(bool normalized) const { return finders_[normalized].size() > 0; }

  // The special ones, and those that `literals` has and that are more than white space: what
  // transformers 5.23 calls the control tokens of a chat.
  std::unordered_set<int32_t> control_tokens(std::string_view literals) const;
  // For TokenGuard::by_content.
  bool are_spelled(std::string_view text, const TokenGuard& guard) const;

  int32_t find(std::string_view content) const;  // Vocabulary::kNone when it is not there
  bool is_special(int32_t id) const;
  // What decoding shows: normalised where the token is; nullptr when `id` is not an added one.
  const std::string* text(int32_t id) const;
  // Whether decoding without special tokens leaves this text out.
  bool is_skipped(std::string_view text) const { return special_.contains(std::string(text)); }

  int32_t end_id() const { return end_id_; }  // past the largest; 0 when there are none

 private:
  struct Entry {
    Token token;
    std::string text;  // what is looked for, and shown
  };
  static Token token_from(const Json& json);
  void check_id(const Json& json, const Token& token, const Vocabulary& vocabulary) const;

  std::optional<ByteTrie::Found> found_at(std::string_view text, size_t at, bool normalized,
                                          const TokenGuard* guard) const;
  // False when another one looks the same in the text.
  bool put(Token token, std::string text);

  std::unordered_map<int32_t, Entry> by_id_;
  std::unordered_map<std::string, int32_t> ids_;
  std::unordered_set<std::string> special_;
  ByteTrie finders_[2];  // before and after normalisation
  ByteTrie contents_;    // of those that are looked for after it
  int32_t end_id_ = 0;
};

}  // namespace fp8kv
