#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/rng.h"
#include "quant/module_pattern.h"
#include "support/regex_matches.h"

namespace fp8kv {
namespace {

using Strings = std::vector<std::string>;

}  // namespace

TEST_CASE("pattern_matches: an entry without re: is the whole name") {
  CHECK(pattern_matches("lm_head", "lm_head") == true);
  CHECK(pattern_matches("lm_head", "model.lm_head") == false);
  CHECK(pattern_matches("re:lm_head", "lm_head.x") == true);
  CHECK(pattern_matches("re:.*_proj$", "a.q_proj") == true);
  CHECK(pattern_matches("re:.*_proj$", "a.q_proj.x") == false);
}

TEST_CASE("pattern_matches: does not guess at expressions of other kinds") {
  for (const char* pattern : {"re:(a|b)", "re:a+", "re:a?", "re:[ab]", "re:\\d", "re:a{2}", "re:*a",
                              "re:a**", "re:a\\", "re:a$b"}) {
    CAPTURE(pattern);
    CHECK(pattern_matches(pattern, "a") == std::nullopt);
  }
}

TEST_CASE("pattern_matches: agrees with a regular expression engine on random patterns") {
  Rng rng(11);
  const auto pick = [&](const Strings& from) { return from[rng.next() % from.size()]; };
  int matched = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string pattern = rng.next() % 4 == 0 ? "^" : "";
    for (uint64_t n = rng.next() % 6; n-- > 0;) {
      pattern += pick({"a", "b", ".", "\\."}) + pick({"", "", "*"});
    }
    if (rng.next() % 2 == 0) pattern += "$";
    std::string text;
    for (uint64_t n = rng.next() % 7; n-- > 0;) text += pick({"a", "b", "."});
    CAPTURE(pattern);
    CAPTURE(text);
    const bool wanted = test::regex_matches(pattern, text);
    CHECK(pattern_matches("re:" + pattern, text) == wanted);
    matched += wanted;
  }
  CHECK(matched > 400);
}

TEST_CASE("pattern_matches: a pattern made to explode takes no time") {
  std::string pattern = "re:";
  for (int i = 0; i < 2000; ++i) pattern += ".*a";
  CHECK(pattern_matches(pattern + "b$", std::string(2000, 'a')) == false);
}

}  // namespace fp8kv
