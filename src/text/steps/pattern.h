// The regular expressions and literal strings with which a tokenizer.json cuts and replaces text.
// They are written for Oniguruma (Ruby's syntax) and run on PCRE2 with its JIT. Constructs that the
// two read differently are rewritten or refused (pattern_dialect.cpp). Matches do not depend on
// PCRE2's version of Unicode (pattern_classes.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/interrupt.h"
#include "json/json.h"
#include "unicode/char_ranges.h"

namespace fp8kv {

// The memory that a match writes to: one per thread.
class PatternScratch {
 public:
  PatternScratch();
  ~PatternScratch();
  PatternScratch(PatternScratch&&) noexcept;
  PatternScratch& operator=(PatternScratch&&) noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
  friend class Pattern;
};

class Pattern {
 public:
  struct Match {
    size_t begin = 0;
    size_t end = 0;
  };

  // Reads {"String": ...} or {"Regex": ...}. Throws if the pattern cannot be compiled or
  // translated, and for an empty string.
  static Pattern from_json(const Json& pattern);
  // Compiles PCRE2's own syntax. `where` is for messages.
  static Pattern from_pcre2(const std::string& regex, const std::string& where);
  // Compiles Oniguruma's syntax.
  static Pattern from_regex(std::string_view regex, const std::string& where);

  // Finds the first match that begins at `from` or later. REQUIRES valid UTF-8, and `from` at the
  // start of a character. Throws if PCRE2 gives up, as in endless backtracking.
  std::optional<Match> find(std::string_view text, size_t from, PatternScratch& scratch) const {
    return find(text, from, scratch, code_for(text));
  }

  // Visits all matches from left to right without overlaps. An empty match is skipped at the end of
  // the match before it, and in an empty text.
  template <typename Visit>
  void for_each(std::string_view text, PatternScratch& scratch, Visit&& visit) const {
    const Code* code = code_for(text);
    std::optional<size_t> last_end;
    for (size_t from = 0; !text.empty() && from <= text.size();) {
      check_interrupt();
      const auto match = find(text, from, scratch, code);
      if (!match) return;
      if (match->begin == match->end && match->end == last_end) {
        from = after_char(text, from);
        continue;
      }
      last_end = from = match->end;
      visit(*match);
    }
  }

  // Returns false only if every match has at least one character.
  bool can_match_nothing() const;

  // The literal string, if the pattern is one.
  const std::string& literal() const { return literal_; }

 private:
  struct Code;
  static size_t after_char(std::string_view text, size_t at);
  const Code* code_for(std::string_view text) const;
  std::optional<Match> find(std::string_view text, size_t from, PatternScratch& scratch,
                            const Code* code) const;

  std::string literal_;                // used when there is no code
  std::shared_ptr<const Code> code_;   // shared by copies
  std::shared_ptr<const Code> exact_;  // for text that contains one of `differences_`
  CharRanges differences_;
  std::string where_;
};

// An Oniguruma pattern in two PCRE2 spellings, which match differently only at the characters in
// `differences`.
struct Pcre2Spelling {
  std::string fast;
  std::string exact;
  CharRanges differences;
};
// Throws, naming the construct, if there is no spelling for it.
Pcre2Spelling pcre2_from_oniguruma(std::string_view regex, const std::string& where);

}  // namespace fp8kv
