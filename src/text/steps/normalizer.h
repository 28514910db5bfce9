// The "normalizer" of a tokenizer.json, or SentencePiece's: changes text before it is cut.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "json/json.h"
#include "text/models/growth_limit.h"
#include "text/sentencepiece/piece_normalizer.h"
#include "text/steps/pattern.h"
#include "unicode/normal_form.h"

namespace fp8kv {

class Normalizer {
 public:
  Normalizer() = default;  // changes nothing
  // Throws for an unsupported kind, and for broken members.
  static Normalizer from_json(const std::optional<Json>& normalizer);
  // `where`: the file, for messages.
  static Normalizer of_pieces(PieceNormalizer normalizer, const std::string& where);

  struct Scratch {
    std::string buffers[2];
  };
  // Returns `text` itself if nothing changes, else a view of `scratch`. `is_first`: `text` begins
  // the whole text. Throws if the text grows too much; see GrowthLimit.
  std::string_view apply(std::string_view text, bool is_first, Scratch& scratch,
                         PatternScratch& match) const;

  bool empty() const { return steps_.empty(); }
  // Whether the first byte of every result comes from the first character of the text.
  bool keeps_the_beginning() const;

 private:
  struct Prepend {
    std::string text;
  };
  struct Replace {
    Pattern pattern;
    std::string content;
    bool one_character;  // the pattern is one literal character, the content is not empty
  };
  struct Strip {
    bool left;
    bool right;
  };
  struct Lowercase {};
  struct StripAccents {};
  struct Nmt {};
  struct Bytes {};
  using Pieces = std::shared_ptr<const PieceNormalizer>;
  using Step = std::variant<NormalForm, Prepend, Replace, Strip, Lowercase, StripAccents, Nmt,
                            Bytes, Pieces>;

  static std::optional<Step> plain_step(const std::string& type);
  void add(const Json& normalizer);
  static std::string_view run(const Step& step, std::string_view text, std::string& out,
                              PatternScratch& match, const GrowthLimit& limit);
  static void replace(const Replace& step, std::string_view text, std::string& out,
                      PatternScratch& match, const GrowthLimit& limit);

  std::vector<Step> steps_;
  std::string where_;  // for messages
};

}  // namespace fp8kv
