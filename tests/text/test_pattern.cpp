#include <doctest/doctest.h>

#include "support/expect_error.h"
#include "text/steps/pattern.h"

namespace fp8kv {
namespace {

// `text` with each match of `regex` in brackets.
std::string marked(std::string_view regex, const std::string& text) {
  const Pattern pattern = Pattern::from_regex(regex, "test");
  PatternScratch scratch;
  std::string out;
  size_t copied = 0;
  pattern.for_each(text, scratch, [&](const Pattern::Match& match) {
    out += text.substr(copied, match.begin - copied);
    out += cat("[", text.substr(match.begin, match.end - match.begin), "]");
    copied = match.end;
  });
  return out + text.substr(copied);
}

// The tokenizers library (Oniguruma) made the expected results.
TEST_CASE("pattern: shorthands mean what they mean in Oniguruma") {
  CHECK(marked("\\s", "a\u0085b\u180Ec\u00A0d") == "a[\u0085]b\u180Ec[\u00A0]d");
  CHECK(marked("[\\S]", " \u180E\u3000x") == " [\u180E]\u3000[x]");
  CHECK(marked("\\h+", "xAf09g") == "x[Af09]g");
  CHECK(marked("\\v", "\n\v\f") == "\n[\v]\f");
  CHECK(marked("\\w+", "aé_1日²½ \u0301-") == "[aé_1日²½] [\u0301]-");
  CHECK(marked("[\\w]+", "a²b") == "[a]²[b]");
  CHECK(marked("\\ba", "²a a") == "²a [a]");
  CHECK(marked("\\d", "1٣½") == "[1][٣]½");
  CHECK(marked("\\p{Greek}\\P{^L}", "αβ1") == "[αβ]1");
  CHECK(marked("\\u00e9|\\x41|\\x{65E5}", "éA日") == "[é][A][日]");
}

TEST_CASE("pattern: repetitions mean what they mean in Oniguruma") {
  CHECK(marked("a{,2}b", "aaab") == "a[aab]");
  CHECK(marked("a{x", "a{x") == "[a{x]");
  CHECK(marked("a{1,2}+b", "aaaab") == "[aaaab]");  // repeated, not possessive
  CHECK(marked("a?+ab", "ab aab") == "ab [aab]");
  CHECK(marked("(?:ab){2,3}?", "ababab") == "[abab]ab");
  CHECK(marked("(?i:'s|'T)x", "'Sx 'tx 'TX") == "['Sx] ['tx] 'TX");
}

TEST_CASE("pattern: lines begin and end at \\n alone") {
  CHECK(marked("^.", "a\nb\rc") == "[a]\n[b]\rc");
  CHECK(marked(".$", "ab\ncd\n") == "a[b]\nc[d]\n");
  CHECK(marked("a.b", "a\rb a\nb") == "[a\rb] a\nb");
}

TEST_CASE("pattern: an empty match is not taken where the match before it ended") {
  CHECK(marked("b*", "abbc") == "[]a[bb]c[]");
  CHECK(marked("b*", "é") == "[]é[]");
  CHECK(marked("b*", "") == "");
}

TEST_CASE("pattern: backtracking without end is an error and not a hang") {
  const Pattern pattern = Pattern::from_regex("(?:a|a)+$(?<!a)", "here");
  PatternScratch scratch;
  const std::string text(64, 'a');
  const std::string message = test::error_of([&] { (void)pattern.find(text, 0, scratch); });
  CHECK(message ==
        "here: the pattern cannot be matched against the text at byte 0: match limit exceeded");
}

TEST_CASE("pattern: deep matches get a larger stack") {
  // Every repetition of a group is remembered, so 32 KiB would not be enough.
  CHECK(marked("(?:(?:a|bc)(?=.))*c", std::string(20000, 'a') + "bcc").front() == '[');
}

}  // namespace
}  // namespace fp8kv
