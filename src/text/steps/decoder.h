// The "decoder" of a tokenizer.json, or that of SentencePiece: turns a stream of tokens into text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "json/json.h"
#include "text/models/growth_limit.h"
#include "text/sentencepiece/sentencepiece_file.h"
#include "text/steps/pattern.h"

namespace fp8kv {

class Decoder {
 public:
  // Throws for an unsupported kind, and for broken members. Without a decoder, tokens are joined by
  // spaces.
  static Decoder from_json(const std::optional<Json>& decoder);
  static Decoder of_pieces(const SentencePieceFile& file);

 private:
  friend class Decoding;
  struct ByteLevel {};
  struct ByteFallback {};
  struct Fuse {};
  struct Replace {
    Pattern pattern;
    std::string content;
  };
  struct Strip {
    std::string content;  // one character
    size_t start;
    size_t stop;
  };
  struct Metaspace {
    std::string replacement;  // one character
    bool prepended;
  };
  struct Suffix {
    std::string suffix;
  };
  struct Spaces {};  // a space between tokens
  struct Pieces {    // SentencePiece's decoder
    bool bytes;      // tokens such as "<0x0A>" are bytes
    bool drops_space;
    bool drops_spaces;  // all spaces at the beginning, not just one
    std::string unknown;
    std::string unknown_surface;
  };
  using Step = std::variant<ByteLevel, ByteFallback, Fuse, Replace, Strip, Metaspace, Suffix,
                            Spaces, Pieces>;

  void add(const Json& decoder);

  std::vector<Step> steps_;
  std::string where_;  // for messages
};

// How bytes that are not UTF-8 are decoded: as U+FFFD, or unchanged.
enum class Broken { replaced, kept };

// Decodes one sequence of tokens. Each step passes on only text that no later token can change. So
// the taken texts together equal the decoding of all tokens at once.
class Decoding {
 public:
  explicit Decoding(const Decoder& decoder, Broken broken = Broken::replaced);

  // Throws if the text grows too much; see GrowthLimit.
  void add(std::string_view token);
  void finish();  // no token follows; call once
  // The text that became certain since the last call.
  std::string take() { return std::exchange(out_, {}); }

 private:
  // The text that a step holds back. Steps see tokens in fragments of complete characters.
  struct State {
    std::string token;    // fragments of a token that must be complete first
    std::string held;     // bytes or text that a later token decides about
    size_t tokens = 0;    // tokens ended so far
    size_t stripped = 0;  // characters stripped at the start of the current token
    bool holds = false;   // Suffix: `held` has a token
    // Pieces: the beginning may still have a space to drop, and one was dropped.
    bool at_beginning = true;
    bool dropped = false;
  };

  void text(size_t step, std::string_view fragment);
  void end_token(size_t step);
  void finish(size_t step);
  void whole_token(size_t step, const Decoder::Step& kind);
  void flush_bytes(size_t step, bool last);
  void flush_byte_pieces(size_t step);
  void add_piece(size_t step, const Decoder::Pieces& kind, std::string_view piece);
  void flush_piece_bytes(size_t step, bool last);
  void strip(size_t step, const Decoder::Strip& kind, std::string_view fragment);
  void pass(size_t step, std::string_view fragment) {
    limit_.check(fragment.size());
    if (!fragment.empty()) text(step + 1, fragment);
  }
  std::string replaced(std::string_view text, std::string_view from, std::string_view to) const;

  const std::vector<Decoder::Step>& steps_;
  Broken broken_;
  std::vector<State> states_;
  PatternScratch match_;
  GrowthLimit limit_;  // for all tokens together
  size_t made_ = 0;    // bytes of text made so far
  std::string out_;
};

}  // namespace fp8kv
