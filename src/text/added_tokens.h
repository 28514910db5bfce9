// Tokens beside those of the model, such as the "added_tokens" of a tokenizer.json. They are found
// in the text before anything is cut or merged.
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

// A range of bytes in a text.
struct TextSpan {
  size_t begin;
  size_t end;
};

// Control tokens that are ignored in closed parts of a text, so that users cannot type commands.
struct TokenGuard {
  std::span<const TextSpan> closed;  // in order, without overlaps
  const std::unordered_set<int32_t>& control;
  // Whether a closed part spells a control token that is searched after normalisation. Its place is
  // then no longer known, so all such tokens are searched before normalisation.
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
    bool in_text = true;  // false: text never becomes this token
  };
  // Takes tokens whose ids are known. REQUIRES distinct contents.
  explicit AddedTokens(std::vector<Token> tokens);
  // Throws if the tokenizers library would give a token another id, and if two tokens look the same
  // in the text.
  AddedTokens(const std::optional<Json>& tokens, const Vocabulary& vocabulary,
              const Normalizer& normalizer);

  // A part of the text, or a token found in it.
  struct Piece {
    size_t begin;
    size_t end;
    int32_t id;  // Vocabulary::kNone: text
  };
  // Cuts `text` at the tokens that are searched before (`normalized` false) or after normalisation.
  // Finds the leftmost token first, and the longest of those at one place. No piece is empty.
  void cut(std::string_view text, bool normalized, std::vector<Piece>& pieces,
           const TokenGuard* guard = nullptr) const;
  bool any(bool normalized) const { return finders_[normalized].size() > 0; }

  // The special tokens, and those in `literals` that are more than white space. transformers 5.23
  // calls these the control tokens of a chat.
  std::unordered_set<int32_t> control_tokens(std::string_view literals) const;
  // Computes TokenGuard::by_content.
  bool are_spelled(std::string_view text, const TokenGuard& guard) const;

  int32_t find(std::string_view content) const;  // Vocabulary::kNone if it is missing
  bool is_special(int32_t id) const;
  // The decoded text, normalised if the token is. Returns nullptr if `id` is no added token.
  const std::string* text(int32_t id) const;
  // Whether decoding without special tokens skips this text.
  bool is_skipped(std::string_view text) const { return special_.contains(std::string(text)); }

  int32_t end_id() const { return end_id_; }  // one past the largest id; 0 if there are no tokens

 private:
  struct SearchedToken {
    Token token;
    std::string text;  // searched in the text, and shown by decoding
  };
  static Token token_from(const Json& json);
  void check_id(const Json& json, const Token& token, const Vocabulary& vocabulary) const;

  std::optional<ByteTrie::Found> found_at(std::string_view text, size_t at, bool normalized,
                                          const TokenGuard* guard) const;
  // Returns false if another token looks the same in the text.
  bool put(Token token, std::string text);

  std::unordered_map<int32_t, SearchedToken> by_id_;
  std::unordered_map<std::string, int32_t> ids_;
  std::unordered_set<std::string> special_;
  ByteTrie finders_[2];  // before and after normalisation
  ByteTrie contents_;    // contents of the tokens searched after normalisation
  int32_t end_id_ = 0;
};

}  // namespace fp8kv
