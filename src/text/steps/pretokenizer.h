// The "pre_tokenizer" of a tokenizer.json: cuts text into words, which merges never cross.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "json/json.h"
#include "text/steps/normalizer.h"
#include "text/steps/pattern.h"
#include "text/steps/shared_steps.h"

namespace fp8kv {

class PreTokenizer {
 public:
  PreTokenizer() = default;  // the whole text is one word
  // Throws for an unsupported kind and for broken members. Throws for a Metaspace with the scheme
  // "first" if `normalizer` makes the beginning of a text uncertain.
  static PreTokenizer from_json(const std::optional<Json>& pre_tokenizer,
                                const Normalizer& normalizer);

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
    std::vector<std::string_view> words;
  };
  // Returns views of `text` or `scratch`, none of them empty; the list is in `scratch`. `is_first`:
  // `text` begins the whole text. With `raw_bytes`, a final ByteLevel does not spell its bytes out.
  const std::vector<std::string_view>& cut(std::string_view text, bool is_first, bool raw_bytes,
                                           Scratch& scratch, PatternScratch& match) const;

  // Whether the result changes if a word begins the whole text.
  bool asks_for_the_beginning() const;

  // Whether the words are spelled in the byte alphabet.
  bool ends_in_byte_level() const;

 private:
  enum class Behaviour { removed, isolated, merged_with_previous, merged_with_next, contiguous };
  enum class Property { numeric, punctuation, white_space, word };
  using Prepend = MetaspaceOptions::Prepend;
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
  struct Words;  // the data that a step works on

  void add(const Json& pre_tokenizer, const Normalizer& normalizer);
  void add_byte_level(const Json& json);
  void add_metaspace(const Json& json, const Normalizer& normalizer);
  void check_beginning(const Json& json, const Normalizer& normalizer) const;
  static Behaviour behaviour_from(const Json& json);
  static void run(const Split& split, Words& words);
  static void run(const ByteLevel& step, bool raw_bytes, Words& words);
  static void run(const Metaspace& step, bool is_first, Words& words);
  static void find_cuts(const Split& split, std::string_view text, Words& words);

  std::vector<Step> steps_;
  std::string where_;  // for messages
};

}  // namespace fp8kv
