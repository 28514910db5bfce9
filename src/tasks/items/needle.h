// A generated retrieval task: a sentence with a number, the needle, hidden in a given text at some
// depth. Makes prompts and grades texts. Generates nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/items/text_item.h"

namespace fp8kv {

enum class NeedleKind {
  single,  // one needle
  keys,    // four needles for different words, one of which is asked for
  values,  // three needles for one word, all of which are asked for
};

// Throws a usage Error unless `name` is "single", "keys" or "values".
NeedleKind parse_needle_kind(std::string_view name);
const char* needle_kind_name(NeedleKind kind);

struct NeedleOptions {
  std::vector<int64_t> lengths = {512, 1024, 2048};  // tokens of prompt and answer together
  int64_t depths = 5;                                // places, evenly from the start to the end
  std::vector<NeedleKind> kinds = {NeedleKind::single};
  uint64_t samples = 1;  // items for each place
  uint64_t seed = 0;
};

// One item before its text is made.
struct NeedlePlace {
  NeedleKind kind = NeedleKind::single;
  int64_t length = 0;  // tokens
  double depth = 0;    // of the needle, from 0 at the start to 1 at the end
  uint64_t sample = 0;
};

// Every place, in the order kind, length, depth, sample.
std::vector<NeedlePlace> needle_places(const NeedleOptions& options);

// "'book.txt': single, 2,048 tokens, depth 50%, sample 0"
std::string needle_name(const std::string& file, const NeedlePlace& place);

// A text cut into sentences, and the words that may name a number.
class Haystack {
 public:
  // Throws if `text`, which `label` names, has fewer than 8 different words of 5 letters and more.
  Haystack(std::string text, std::string label);

  const std::string& label() const { return label_; }
  const std::vector<std::string>& names() const { return names_; }
  size_t sentences() const { return ends_.size(); }
  // The first `count` sentences, in turn from the beginning again if there are fewer, with
  // `needles` between them: each is at the sentence that its share of `count` falls on.
  struct Placed {
    double share;  // from 0 to 1
    std::string text;
  };
  std::string filled(size_t count, std::span<const Placed> needles) const;

 private:
  std::string_view sentence(size_t index) const;

  std::string text_;
  std::string label_;
  std::vector<size_t> ends_;        // the end of each sentence in text_
  std::vector<std::string> names_;  // sorted, in lower case
};

// The numbers that an item asks for, with ", " between them.
std::string needle_answer(const Haystack& haystack, const NeedlePlace& place, uint64_t seed);

// The number of tokens of a prompt.
using CountTokens = std::function<int64_t(const std::string& prompt)>;

// Numbers, words and other needles follow from the seed and the place. The text is as long as fits.
// Throws if not even one sentence fits.
TextItem needle_item(const Haystack& haystack, const NeedlePlace& place, uint64_t seed,
                     const CountTokens& count);

// Right if every number stands in the text by itself. The answer is what was found.
TextGrade grade_needle(const TextItem& item, std::string_view text);

}  // namespace fp8kv
