// A regular expression that finds the answer in a generated text. PCRE2's syntax, which reads what
// is usual in Python alike. Its size and the steps of a match are bounded: patterns are input.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace fp8kv {

class AnswerPattern {
 public:
  static constexpr size_t kMaxBytes = 4096;
  static constexpr uint32_t kMaxSteps = 100'000;  // of PCRE2's match(), from one place of the text

  enum class Which { first, last };
  enum class Outcome { found, none, gave_up };
  struct Found {
    Outcome outcome = Outcome::none;
    std::string text;  // the match's first group that is not empty; the match without groups
  };

  // Throws, with `where`, for a pattern that is too long or cannot be compiled.
  AnswerPattern(const std::string& regex, const std::string& where);

  // Of the matches from left to right that do not overlap. `text` is valid UTF-8.
  // gave_up: a match took more than kMaxSteps.
  Found find(std::string_view text, Which which = Which::first) const;

 private:
  struct Code;
  std::shared_ptr<const Code> code_;  // shared by copies
};

}  // namespace fp8kv
