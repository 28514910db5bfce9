#include "tasks/items/needle.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/rng.h"
#include "base/text.h"

namespace fp8kv {
namespace {

// Between the numbers of an answer.
constexpr std::string_view kBetween = ", ";

constexpr const char* kNames[] = {"single", "keys", "values"};

constexpr size_t kLeastNames = 8;
constexpr size_t kLeastLetters = 5;
constexpr size_t kOtherKeys = 3;
constexpr size_t kValues = 3;
// Room for the answer: a six-digit number takes six tokens at most, and words may come before it.
constexpr int64_t kAnswerTokens = 24;
constexpr int64_t kAnswerTokensOfValues = 48;

bool is_small_letter(char c) {
  return c >= 'a' && c <= 'z';
}

// Words of ASCII letters alone: every tokenizer has them.
std::vector<std::string> names_in(std::string_view text) {
  std::set<std::string> names;
  std::string word;
  const auto take = [&] {
    if (word.size() >= kLeastLetters && std::all_of(word.begin(), word.end(), is_small_letter)) {
      names.insert(word);
    }
    word.clear();
  };
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isspace(byte) || std::ispunct(byte)) {
      take();
    } else {
      word += c;
    }
  }
  take();
  return {names.begin(), names.end()};
}

// A sentence ends behind . ? or ! before a blank, and at the end of a line.
std::vector<size_t> sentence_ends(std::string_view text) {
  std::vector<size_t> ends;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool stop = text[i] == '.' || text[i] == '?' || text[i] == '!';
    const bool blank = i + 1 < text.size() && (text[i + 1] == ' ' || text[i + 1] == '\n');
    if (text[i] == '\n' || (stop && blank)) ends.push_back(i + 1);
  }
  if (ends.empty() || ends.back() < text.size()) ends.push_back(text.size());
  return ends;
}

std::string number_of(Rng& rng) {
  return cat(100000 + rng.next() % 900000);
}

std::string needle_sentence(const std::string& name, const std::string& number) {
  return cat(" The number for \"", name, "\" is ", number, ".");
}

// The needles of an item, and what is asked about them.
struct Hidden {
  std::string name;
  std::vector<std::string> numbers;
  std::vector<Haystack::Placed> needles;
};

// Draws `count` different names.
std::vector<std::string> draw_names(const Haystack& haystack, size_t count, Rng& rng) {
  std::vector<std::string> names;
  while (names.size() < count) {
    const std::string& name = haystack.names()[rng.next() % haystack.names().size()];
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

Hidden hide(const Haystack& haystack, const NeedlePlace& place, uint64_t seed) {
  const auto depth = static_cast<uint64_t>(std::llround(place.depth * 10000));
  Rng rng(seed ^ (static_cast<uint64_t>(place.length) << 40) ^ (depth << 20) ^
          (static_cast<uint64_t>(place.kind) << 16) ^ place.sample);
  const size_t others = place.kind == NeedleKind::keys ? kOtherKeys : 0;
  const std::vector<std::string> names = draw_names(haystack, 1 + others, rng);
  Hidden hidden;
  hidden.name = names[0];
  const auto add = [&](const std::string& name, double share) {
    const std::string number = number_of(rng);
    hidden.needles.push_back({share, needle_sentence(name, number)});
    if (name == hidden.name) hidden.numbers.push_back(number);
  };
  add(hidden.name, place.depth);
  for (size_t i = 1; i <= others; ++i) add(names[i], rng.uniform());
  while (place.kind == NeedleKind::values && hidden.numbers.size() < kValues) {
    add(hidden.name, rng.uniform());
  }
  return hidden;
}

std::string needle_prompt(const Haystack& haystack, const Hidden& hidden, size_t sentences) {
  const bool several = hidden.numbers.size() > 1;
  return cat("The text below gives ", several ? "numbers" : "a number", " for a word. Remember ",
             several ? "them" : "it", ".\n\n", haystack.filled(sentences, hidden.needles),
             "\n\nQuestion: Which ", several ? "numbers does" : "number does",
             " the text give for \"", hidden.name, "\"?\nAnswer: The ",
             several ? "numbers for \"" : "number for \"", hidden.name,
             several ? "\" are" : "\" is");
}

bool stands_alone(std::string_view text, const std::string& number) {
  const auto is_digit = [&](size_t at) {
    return at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]));
  };
  for (size_t at = text.find(number); at != text.npos; at = text.find(number, at + 1)) {
    if (!(at > 0 && is_digit(at - 1)) && !is_digit(at + number.size())) return true;
  }
  return false;
}

}  // namespace

NeedleKind parse_needle_kind(std::string_view name) {
  const auto* found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found != std::end(kNames)) return static_cast<NeedleKind>(found - std::begin(kNames));
  throw Error(cat("is ", quote(std::string(name)), ", expected single, keys or values"), "",
              ErrorKind::usage);
}

const char* needle_kind_name(NeedleKind kind) {
  return kNames[static_cast<size_t>(kind)];
}

std::vector<NeedlePlace> needle_places(const NeedleOptions& options) {
  std::vector<NeedlePlace> places;
  for (const NeedleKind kind : options.kinds) {
    for (const int64_t length : options.lengths) {
      for (int64_t d = 0; d < options.depths; ++d) {
        const double depth = options.depths == 1
                                 ? 0.5
                                 : static_cast<double>(d) / static_cast<double>(options.depths - 1);
        for (uint64_t s = 0; s < options.samples; ++s) places.push_back({kind, length, depth, s});
      }
    }
  }
  return places;
}

std::string needle_name(const std::string& file, const NeedlePlace& place) {
  return cat(file, ": ", needle_kind_name(place.kind), ", ",
             grouped(static_cast<uint64_t>(place.length)), " tokens, depth ",
             std::lround(place.depth * 100), "%, sample ", place.sample);
}

Haystack::Haystack(std::string text, std::string label)
    : text_(std::move(text)),
      label_(std::move(label)),
      ends_(sentence_ends(text_)),
      names_(names_in(text_)) {
  if (names_.size() >= kLeastNames) return;
  throw Error(cat(label_, ": has ", count_of(names_.size(), "different word"), " of ",
                  kLeastLetters, " small letters and more, expected ", kLeastNames),
              "give a longer text, such as a book");
}

std::string_view Haystack::sentence(size_t index) const {
  const size_t at = index % ends_.size();
  const size_t begin = at == 0 ? 0 : ends_[at - 1];
  return std::string_view(text_).substr(begin, ends_[at] - begin);
}

std::string Haystack::filled(size_t count, std::span<const Placed> needles) const {
  std::string text;
  for (size_t i = 0; i <= count; ++i) {
    for (const Placed& needle : needles) {
      const auto at = static_cast<size_t>(std::llround(needle.share * static_cast<double>(count)));
      if (at == i) text += needle.text;
    }
    if (i < count) text += sentence(i);
  }
  return text;
}

std::string needle_answer(const Haystack& haystack, const NeedlePlace& place, uint64_t seed) {
  return join(hide(haystack, place, seed).numbers, kBetween);
}

TextItem needle_item(const Haystack& haystack, const NeedlePlace& place, uint64_t seed,
                     const CountTokens& count) {
  TextItem item;
  item.where = needle_name(haystack.label(), place);
  item.max_tokens = place.kind == NeedleKind::values ? kAnswerTokensOfValues : kAnswerTokens;
  item.stops = {"\n"};
  const Hidden hidden = hide(haystack, place, seed);
  item.answer = join(hidden.numbers, kBetween);
  const auto fits = [&](size_t sentences) {
    return count(needle_prompt(haystack, hidden, sentences)) + item.max_tokens <= place.length;
  };
  if (!fits(1)) {
    throw Error(cat(item.where, ": the question and one sentence take more tokens"),
                "use a larger --needle-lengths");
  }
  size_t most = 2;
  while (fits(most)) most *= 2;
  size_t least = most / 2;
  while (least + 1 < most) {
    const size_t middle = least + (most - least) / 2;
    (fits(middle) ? least : most) = middle;
  }
  item.prompt = needle_prompt(haystack, hidden, least);
  return item;
}

TextGrade grade_needle(const TextItem& item, std::string_view text) {
  std::vector<std::string> found;
  size_t wanted = 0;
  for (size_t begin = 0; begin < item.answer.size();) {
    const size_t end = std::min(item.answer.find(kBetween, begin), item.answer.size());
    const std::string number = item.answer.substr(begin, end - begin);
    if (stands_alone(text, number)) found.push_back(number);
    ++wanted;
    begin = end + kBetween.size();
  }
  return {{static_cast<uint8_t>(found.size() == wanted)}, {join(found, kBetween)}};
}

}  // namespace fp8kv
