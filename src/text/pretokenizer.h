// The "pre_tokenizer" of a tokenizer.json: cuts text into the words that merges never cross.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json.h"
#include "text/pattern.h"

namespace fp8kv {

class PreTokenizer {
 public:
  PreTokenizer() = default;  // all of the text is one word
  // `beginning_kept`: whether the normalizer leaves the first byte of a text what it was, which
  // Metaspace's "first" needs. Throws for a kind that is not implemented, and for broken members.
  static PreTokenizer from_json(const std::optional<Json>& pre_tokenizer, bool beginning_kept);

  struct Span {
    size_t begin;
    size_t end;
  };
  struct Cut {
    Span span;
    bool is_match;
  };
  struct Scratch {
    std::string buffers[2];
    std::vector<Span> spans;
    std::vector<Span> next_spans;
    std::vector<Cut> cuts;
  };
  // `words` are views of `text` or of `scratch`, none empty. `is_first`: `text` begins where the
  // whole text does. With `raw_bytes`, a ByteLevel at the end does not spell its bytes out.
  void cut(std::string_view text, bool is_first, bool raw_bytes, Scratch& scratch,
           PatternScratch& match, std::vector<std::string_view>& words) const;

  // True when the words are spelled in the byte alphabet.
  bool ends_in_byte_level() const;

 private:
  enum class Behaviour { removed, isolated, merged_with_previous, merged_with_next, contiguous };
  enum class Property { numeric, punctuation, white_space };
  enum class Prepend { always, first, never };
  struct Split {
    std::variant<Pattern, Property, char32_t> delimiter;
    Behaviour behaviour;
    bool invert = false;
  };
  struct ByteLevel {
    bool add_prefix_space;
    std::optional<Split> split;
  };
  struct Metaspace {
    std::string replacement;
    Prepend prepend;
    bool split;
  };
  using Step = std::variant<Split, ByteLevel, Metaspace>;
  struct Words;  // what a step works on

  void add(const Json& pre_tokenizer, bool beginning_kept);
  void add_byte_level(const Json& json);
  void add_metaspace(const Json& json, bool beginning_kept);
  static Behaviour behaviour_from(const Json& json);
  static void run(const Split& split, Words& words);
  static void run(const ByteLevel& step, bool raw_bytes, Words& words);
  static void run(const Metaspace& step, bool is_first, Words& words);
  static void find_cuts(const Split& split, std::string_view text, Words& words);

  std::vector<Step> steps_;
};

}  // namespace fp8kv
