#include "unicode/normal_form.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "unicode/characters.h"
#include "unicode/unicode_tables.h"

namespace fp8kv {
namespace {

// Hangul syllables are composed of jamos by arithmetic (chapter 3.12 of the Unicode Standard).
constexpr char32_t kSyllables = 0xAC00;
constexpr char32_t kLeads = 0x1100;
constexpr char32_t kVowels = 0x1161;
constexpr char32_t kTails = 0x11A7;  // the first one means no tail
constexpr char32_t kLeadCount = 19;
constexpr char32_t kVowelCount = 21;
constexpr char32_t kTailCount = 28;
constexpr char32_t kSyllableCount = kLeadCount * kVowelCount * kTailCount;

bool is_syllable(char32_t c) {
  return c >= kSyllables && c < kSyllables + kSyllableCount;
}
bool is_vowel(char32_t c) {
  return c >= kVowels && c < kVowels + kVowelCount;
}
bool is_tail(char32_t c) {
  return c > kTails && c < kTails + kTailCount;
}

// kDecompositions, with indices that find a row by its character or by its parts.
class Decompositions {
 public:
  struct Row {
    char32_t c;
    bool compatible;
    bool composes;
    std::span<const uint32_t> parts;
  };

  Decompositions() {
    for (auto rest = unicode::kDecompositions; !rest.empty();) {
      const uint32_t head = rest[0];
      const Row row{head & 0x1FFFFF, (head & unicode::kCompatible) != 0,
                    (head & unicode::kComposes) != 0, rest.subspan(1, head >> 24)};
      rows_.push_back(row);
      if (row.composes) pairs_.push_back({pair_of(row.parts[0], row.parts[1]), row.c});
      rest = rest.subspan(1 + row.parts.size());
    }
    std::sort(pairs_.begin(), pairs_.end(),
              [](const Pair& a, const Pair& b) { return a.parts < b.parts; });
  }

  std::span<const Row> rows() const { return rows_; }

  const Row* find(char32_t c) const {
    const auto row = std::lower_bound(rows_.begin(), rows_.end(), c,
                                      [](const Row& a, char32_t b) { return a.c < b; });
    return row != rows_.end() && row->c == c ? &*row : nullptr;
  }

  std::optional<char32_t> compose(char32_t first, char32_t second) const {
    if (first >= kLeads && first < kLeads + kLeadCount && is_vowel(second)) {
      return kSyllables + ((first - kLeads) * kVowelCount + (second - kVowels)) * kTailCount;
    }
    if (is_syllable(first) && (first - kSyllables) % kTailCount == 0 && is_tail(second)) {
      return first + (second - kTails);
    }
    const uint64_t parts = pair_of(first, second);
    const auto pair = std::lower_bound(pairs_.begin(), pairs_.end(), parts,
                                       [](const Pair& a, uint64_t b) { return a.parts < b; });
    if (pair == pairs_.end() || pair->parts != parts) return std::nullopt;
    return pair->c;
  }

 private:
  struct Pair {
    uint64_t parts;
    char32_t c;
  };
  static uint64_t pair_of(char32_t first, char32_t second) {
    return uint64_t{first} << 32 | second;
  }

  std::vector<Row> rows_;
  std::vector<Pair> pairs_;
};

const Decompositions& decompositions() {
  static const Decompositions all;
  return all;
}

bool composes(NormalForm form) {
  return form == NormalForm::nfc || form == NormalForm::nfkc;
}
bool is_compatible(NormalForm form) {
  return form == NormalForm::nfkc || form == NormalForm::nfkd;
}

// Appends the full decomposition of c. Recursion follows the table, at most three steps deep.
template <typename Append>
void decompose(char32_t c, bool compatible, const Append& append) {
  if (is_syllable(c)) {
    const char32_t index = c - kSyllables;
    append(kLeads + index / (kVowelCount * kTailCount));
    append(kVowels + index / kTailCount % kVowelCount);
    if (index % kTailCount != 0) append(kTails + index % kTailCount);
    return;
  }
  const Decompositions::Row* row = decompositions().find(c);
  if (!row || (row->compatible && !compatible)) return append(c);
  for (const uint32_t part : row->parts) decompose(part, compatible, append);
}

// The characters that a normal form may change, by themselves or together with those before them.
// Text between two other characters is normalised by itself, whatever surrounds it.
class Active {
 public:
  explicit Active(NormalForm form) {
    for (char32_t c = 0, end; c <= 0x10FFFF; c = end) end = add_marks(c);
    for (const Decompositions::Row& row : decompositions().rows()) {
      if (composes(form) && row.composes) add({row.parts[1], row.parts[1] + 1});
      if (changes(row, form)) add({row.c, row.c + 1});
    }
    if (composes(form)) {
      add({kVowels, kVowels + kVowelCount});
      add({kTails + 1, kTails + kTailCount});
    } else {
      add({kSyllables, kSyllables + kSyllableCount});
    }
    std::sort(ranges_.begin(), ranges_.end(),
              [](const Range& a, const Range& b) { return a.begin < b.begin; });
    // Merge ranges that touch or overlap, which shortens the search.
    size_t kept = 0;
    for (const Range& range : ranges_) {
      if (kept > 0 && range.begin <= ranges_[kept - 1].end) {
        ranges_[kept - 1].end = std::max(ranges_[kept - 1].end, range.end);
      } else {
        ranges_[kept++] = range;
      }
    }
    ranges_.resize(kept);
  }

  bool has(char32_t c) const {
    const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), c,
                                        [](char32_t a, const Range& b) { return a < b.begin; });
    return after != ranges_.begin() && c < std::prev(after)->end;
  }

  char32_t first() const { return ranges_.front().begin; }

 private:
  struct Range {
    char32_t begin;
    char32_t end;
  };

  void add(Range range) { ranges_.push_back(range); }

  // Adds the run of combining classes that contains c, unless its class is 0. Returns the end of
  // the run.
  char32_t add_marks(char32_t c) {
    const unicode::Runs runs = unicode::kCombiningClassRuns;
    const auto next = std::upper_bound(runs.begin(), runs.end(), c << 8 | 0xFF);
    const char32_t end = next == runs.end() ? 0x110000 : *next >> 8;
    if ((*std::prev(next) & 0xFF) != 0) add({c, end});
    return end;
  }

  static bool changes(const Decompositions::Row& row, NormalForm form) {
    if (row.compatible) return is_compatible(form);
    if (!composes(form) || !row.composes) return true;
    // A row that composes again changes nothing, unless one of its parts changes.
    bool compatible_part = false;
    for (const uint32_t part : row.parts) {
      const Decompositions::Row* below = decompositions().find(part);
      compatible_part = compatible_part || (below && changes(*below, form));
    }
    return compatible_part;
  }

  std::vector<Range> ranges_;
};

const Active& active(NormalForm form) {
  static const std::array<Active, 4> all{Active(NormalForm::nfc), Active(NormalForm::nfd),
                                         Active(NormalForm::nfkc), Active(NormalForm::nfkd)};
  return all[static_cast<size_t>(form)];
}

struct Character {
  char32_t c;
  uint8_t combining_class;
};

void sort_marks(std::vector<Character>& text) {
  for (auto begin = text.begin(); begin != text.end();) {
    begin = std::find_if(begin, text.end(), [](const Character& a) { return a.combining_class; });
    const auto end =
        std::find_if(begin, text.end(), [](const Character& a) { return a.combining_class == 0; });
    std::stable_sort(begin, end, [](const Character& a, const Character& b) {
      return a.combining_class < b.combining_class;
    });
    begin = end;
  }
}

void compose(std::vector<Character>& text) {
  size_t kept = 0;
  std::optional<size_t> starter;
  for (const Character& next : text) {
    // A mark of the same class, or a starter, separates later characters from the starter.
    const bool blocked =
        starter && kept - 1 > *starter && text[kept - 1].combining_class >= next.combining_class;
    if (starter && !blocked) {
      if (const auto whole = decompositions().compose(text[*starter].c, next.c)) {
        text[*starter].c = *whole;
        continue;
      }
    }
    if (next.combining_class == 0) starter = kept;
    text[kept++] = next;
  }
  text.resize(kept);
}

// Calls a function once every so many steps of a loop.
class Heard {
 public:
  explicit Heard(void (*call)()) : call_(call) {}
  void operator()() const {
    if (call_ && (++steps_ & 0x3FFF) == 0) call_();
  }

 private:
  void (*call_)();
  mutable uint32_t steps_ = 0;
};

void append_normal_form(std::string& out, std::string_view text, NormalForm form,
                        std::vector<Character>& scratch, const Heard& heard) {
  scratch.clear();
  const auto append = [&](char32_t c) {
    scratch.push_back({c, unicode::value_in(unicode::kCombiningClassRuns, c)});
  };
  for (size_t at = 0; at < text.size();) {
    heard();
    decompose(next_char(text, at), is_compatible(form), append);
  }
  sort_marks(scratch);
  if (composes(form)) compose(scratch);
  for (const Character& character : scratch) {
    heard();
    append_char(out, character.c);
  }
}

}  // namespace

std::string_view normal_form(std::string_view text, NormalForm form, std::string& buffer,
                             void (*heard)()) {
  const Active& is_active = active(form);
  const char32_t first = is_active.first();
  buffer.clear();
  std::vector<Character> scratch;
  size_t copied = 0;
  const Heard every{heard};
  size_t stretch = 0;  // start of the last inactive character, which the next one may change
  for (size_t at = 0; at < text.size();) {
    every();
    if (static_cast<unsigned char>(text[at]) < 0x80) {  // no form changes ASCII
      stretch = at++;
      continue;
    }
    size_t end = at;
    char32_t c = next_char(text, end);
    if (c < first || !is_active.has(c)) {
      stretch = at;
      at = end;
      continue;
    }
    for (at = end; at < text.size(); at = end) {
      every();
      c = next_char(text, end);
      if (c < first || !is_active.has(c)) break;
    }
    if (copied == 0) buffer.reserve(text.size() + text.size() / 8);
    buffer += text.substr(copied, stretch - copied);
    append_normal_form(buffer, text.substr(stretch, at - stretch), form, scratch, every);
    copied = stretch = at;
  }
  if (copied == 0) return text;
  buffer += text.substr(copied);
  return buffer;
}

}  // namespace fp8kv
