// A model's tokenizer: tokenizer.json of the kinds BPE and Unigram, Mistral's tekken.json,
// SentencePiece's tokenizer.model, or vocab.json with merges.txt. Other kinds (WordPiece) are
// refused by name.
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
  // Reads `path` (a tokenizer.json). Throws with the file and the key for anything it does not
  // implement exactly: never an approximation.
  static Tokenizer load(const std::filesystem::path& path);
  // The files of tokenizers, for messages about a folder that has none.
  static constexpr std::string_view kFiles =
      "tokenizer.json, no tekken.json, no tokenizer.model, and no vocab.json with a merges.txt";
  // The tokenizer of a model folder: tokenizer.json, or else tekken.json, or else tokenizer.model,
  // or else vocab.json and merges.txt. Nothing when the folder has none of them. Throws as load()
  // does.
  static std::optional<Tokenizer> find_in(const std::filesystem::path& folder);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Ids of `text`, which must be valid UTF-8 (throws with the offset otherwise). Special tokens
  // written in the text are recognised. With `add_special_tokens`, what the template says is added.
  // Thread-safe.
  std::vector<int32_t> encode(std::string_view text, bool add_special_tokens) const;

  // As encode(text, false) of a text in parts: within the `closed` ones, which are in order, a
  // token of `control` is text like any other. Thread-safe.
  std::vector<int32_t> encode_guarded(std::string_view text, std::span<const TextSpan> closed,
                                      const std::unordered_set<int32_t>& control) const;
  // See AddedTokens::control_tokens.
  std::unordered_set<int32_t> control_tokens(std::string_view literals) const;

  // Text of `ids`. An id without a token has none, as in the tokenizers library: models pad their
  // vocabulary. Bytes that are not UTF-8 become U+FFFD.
  std::string decode(std::span<const int32_t> ids, bool skip_special_tokens) const;

  // What the template puts before a single text (BOS where there is one), and after it.
  const std::vector<int32_t>& prefix() const;
  const std::vector<int32_t>& suffix() const;

  // One more than the largest id.
  int32_t vocab_size() const;
  // Whether the id has a token.
  bool has(int32_t id) const;
  std::optional<int32_t> id_of(std::string_view token) const;
  // As the tokenizer spells it, such as "▁the". Throws for ids outside the vocabulary.
  std::string_view token(int32_t id) const;
  bool is_special(int32_t id) const;

 private:
  struct State;
  std::vector<int32_t> encode_with(std::string_view text, const TokenGuard* guard) const;
  explicit Tokenizer(std::unique_ptr<const State> state);
  std::unique_ptr<const State> state_;
  friend class TokenStream;
};

// Decodes a growing sequence: the pieces joined are decode() of all ids. Never gives half a
// character: bytes are held back until they are complete, or until finish().
class TokenStream {
 public:
  // `prompt` are the ids already shown; their text is not given again, but decides about the
  // leading space of what follows. REQUIRES `tokenizer` to outlive this.
  TokenStream(const Tokenizer& tokenizer, std::span<const int32_t> prompt,
              bool skip_special_tokens);
  ~TokenStream();

  std::string add(int32_t id);
  std::string finish();  // no id follows; call once

 private:
  std::string unseen(std::string text);

  const Tokenizer& tokenizer_;
  bool skip_special_tokens_;
  std::unique_ptr<Decoding> decoding_;
  std::string seen_;  // the end of the prompt's text, which `decoding_` still holds back
};

}  // namespace fp8kv
