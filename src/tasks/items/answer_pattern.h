// A regular expression that finds the answer in a generated text. Its syntax is PCRE2's, which
// reads common Python patterns like Python. Size and steps are bounded, because patterns are input.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace fp8kv {

class AnswerPattern {
 public:
  static constexpr size_t kMaxBytes = 4096;
  static constexpr uint32_t kMaxSteps = 100'000;  // of PCRE2's matcher, per starting place

  enum class Which { first, last };
  enum class Outcome { found, none, gave_up };
  struct Found {
    Outcome outcome = Outcome::none;
    std::string text;  // the first group that is not empty, or the whole match without groups
  };

  // Throws if the pattern is too long or cannot be compiled. The error begins with `where`.
  AnswerPattern(const std::string& regex, const std::string& where);

  // Returns the first or the last of the matches, which do not overlap. `text` is valid UTF-8.
  // gave_up: a match took more than kMaxSteps.
  Found find(std::string_view text, Which which = Which::first) const;

 private:
  struct Code;
  std::shared_ptr<const Code> code_;  // shared by copies
};

}  // namespace fp8kv
