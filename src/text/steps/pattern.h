// The regular expressions and literal strings by which a tokenizer.json cuts and replaces text.
// tokenizer.json writes them for Oniguruma (Ruby's syntax); they run on PCRE2 with its JIT. What
// the two read differently is rewritten, and what cannot be is refused (pattern_dialect.cpp). What
// they match does not depend on PCRE2's version of Unicode (pattern_classes.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/interrupt.h"
#include "json/json.h"
#include "unicode/char_ranges.h"

namespace fp8kv {

// What a match needs to write to: one per thread.
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

  // From {"String": ...} or {"Regex": ...}. Throws for what cannot be compiled or translated, and
  // for an empty string.
  static Pattern from_json(const Json& pattern);
  // From PCRE2's own syntax. `where` is for messages.
  static Pattern from_pcre2(const std::string& regex, const std::string& where);
  // From Oniguruma's.
  static Pattern from_regex(std::string_view regex, const std::string& where);

  // The first match that begins at `from` or later. `text` must be valid UTF-8 and `from` the start
  // of a character. Throws when PCRE2 gives up (backtracking without end).
  std::optional<Match> find(std::string_view text, size_t from, PatternScratch& scratch) const {
    return find(text, from, scratch, code_for(text));
  }

  // All matches from left to right that do not overlap; an empty match is not taken where the match
  // before it ended, nor in an empty text.
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

  // False only when every match has at least one character.
  bool can_match_nothing() const;

  // The string, when this is a plain one.
  const std::string& literal() const { return literal_; }

 private:
  struct Code;
  static size_t after_char(std::string_view text, size_t at);
  const Code* code_for(std::string_view text) const;
  std::optional<Match> find(std::string_view text, size_t from, PatternScratch& scratch,
                            const Code* code) const;

  std::string literal_;                // used when there is no code
  std::shared_ptr<const Code> code_;   // shared by copies
  std::shared_ptr<const Code> exact_;  // for text that has any of the differences
  CharRanges differences_;
  std::string where_;
};

// An Oniguruma pattern for PCRE2, in two ways that differ in the matches of some characters alone.
struct Pcre2Spelling {
  std::string fast;
  std::string exact;
  CharRanges differences;
};
// Throws, naming the construct that has no spelling.
Pcre2Spelling pcre2_from_oniguruma(std::string_view regex, const std::string& where);

}  // namespace fp8kv
