// A model's tokenizer: tokenizer.json of the kinds BPE and Unigram, Mistral's tekken.json,
// SentencePiece's tokenizer.model, or vocab.json with merges.txt. Refuses other kinds (WordPiece)
// by name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "text/added_tokens.h"

namespace fp8kv {

class Decoding;

class Tokenizer {
 public:
  // Reads `path`, a tokenizer.json. Throws with the file and the key for anything it does not
  // implement exactly: never an approximation.
  static Tokenizer load(const std::filesystem::path& path);
  // The files that are searched, for messages about a folder that has none of them.
  static constexpr std::string_view kFiles =
      "tokenizer.json, no tekken.json, no tokenizer.model, and no vocab.json with a merges.txt";
  // Reads the tokenizer of a model folder: tokenizer.json, or else tekken.json, tokenizer.model, or
  // vocab.json with merges.txt. Returns nothing if the folder has none of them. Throws as load()
  // does.
  static std::optional<Tokenizer> find_in(const std::filesystem::path& folder);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Encodes `text`. Throws with the offset unless it is valid UTF-8. Recognises special tokens
  // written in the text. `add_special_tokens` adds those of the template. Thread-safe.
  std::vector<int32_t> encode(std::string_view text, bool add_special_tokens) const;

  // Like encode(text, false), for a text with closed parts. Within `closed`, which must be in
  // order, the tokens in `control` are ordinary text. Thread-safe.
  std::vector<int32_t> encode_guarded(std::string_view text, std::span<const TextSpan> closed,
                                      const std::unordered_set<int32_t>& control) const;
  // See AddedTokens::control_tokens.
  std::unordered_set<int32_t> control_tokens(std::string_view literals) const;

  // Decodes `ids`. As in the tokenizers library, an id without a token has no text, because models
  // pad their vocabulary. Invalid UTF-8 becomes U+FFFD.
  std::string decode(std::span<const int32_t> ids, bool skip_special_tokens) const;

  // The bytes that the id adds to a text, with special tokens as they are spelled. They are not
  // UTF-8 if the id is half a character. "" for an id without a token.
  std::string bytes_of(int32_t id) const;
  // Like bytes_of, with U+FFFD in place of bytes that are not UTF-8.
  std::string text_of(int32_t id) const;

  // The ids that the template puts before a single text (BOS, if there is one), and after it.
  const std::vector<int32_t>& prefix() const;
  const std::vector<int32_t>& suffix() const;

  // One past the largest id.
  int32_t vocab_size() const;
  // Whether the id has a token.
  bool has(int32_t id) const;
  std::optional<int32_t> id_of(std::string_view token) const;
  // The token as the tokenizer spells it, such as "▁the". Throws for ids outside the vocabulary.
  std::string_view token(int32_t id) const;
  bool is_special(int32_t id) const;

 private:
  struct State;
  std::vector<int32_t> encode_with(std::string_view text, const TokenGuard* guard) const;
  explicit Tokenizer(std::unique_ptr<const State> state);
  std::unique_ptr<const State> state_;
  friend class TokenStream;
};

// Decodes a growing sequence. The pieces together equal decode() of all ids. Never returns half a
// character: bytes are held back until they are complete, or until finish().
class TokenStream {
 public:
  // `prompt`: ids that were already shown. Their text is not returned again, but it decides about
  // the leading space of the next text. REQUIRES `tokenizer` to outlive this object.
  TokenStream(const Tokenizer& tokenizer, std::span<const int32_t> prompt,
              bool skip_special_tokens);
  ~TokenStream();

  std::string add(int32_t id);
  std::string finish();  // call once, after the last id

 private:
  std::string unseen(std::string text);

  const Tokenizer& tokenizer_;
  bool skip_special_tokens_;
  std::unique_ptr<Decoding> decoding_;
  std::string seen_;  // the end of the prompt's text, still held back by `decoding_`
};

}  // namespace fp8kv
