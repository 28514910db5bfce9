#include <string>

#include <doctest/doctest.h>

#include "base/wrapped_text.h"

namespace fp8kv {
namespace {

TEST_CASE("sentence: goes on below what follows its name, and is as it was where it fits") {
  const std::string text = "verdict   layers 0 and 1 need theirs; ± others";
  CHECK(sentence_text(text, kUnlimitedWidth, 10) == text);
  CHECK(sentence_text(text, 46, 10) == text);  // 47 bytes, 46 characters
  CHECK(sentence_text(text, 45, 10) ==
        "verdict   layers 0 and 1 need theirs; ±\n"
        "          others");
  CHECK(sentence_text(text, 30, 10) ==
        "verdict   layers 0 and 1 need\n"
        "          theirs; ± others");
}

TEST_CASE("sentence: lines of its own are kept where they fit, and else made anew") {
  const std::string text = "margins to the largest code, and to\nfull precision";
  CHECK(sentence_text(text, 35, 0) == text);
  CHECK(sentence_text(text, 34, 0) == "margins to the largest code, and\nto full precision");
}

TEST_CASE("sentence: a word that is too long stays whole, and so does all without room") {
  CHECK(sentence_text("fingerprint  kv-v2:0123456789abcdef0123456789 of it", 33, 13) ==
        "fingerprint  kv-v2:0123456789abcdef0123456789\n"
        "             of it");
  CHECK(sentence_text("verdict   nothing fits beside the name", 29, 10) ==
        "verdict   nothing fits beside the name");
}

}  // namespace
}  // namespace fp8kv
