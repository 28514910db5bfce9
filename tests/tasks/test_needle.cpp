// Needles in a text: where they stand, what fits, and what counts as found. A token is a word here.
#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "support/expect_error.h"
#include "tasks/items/needle.h"

namespace fp8kv {
namespace {

using test::error_of;

// Sentences of four words, each with a number of its own.
Haystack hundred_sentences() {
  const char* nouns[] = {"garden", "window",  "bridge", "candle", "forest",
                         "harbor", "kitchen", "ladder", "meadow", "oyster"};
  std::string text;
  for (int i = 0; i < 100; ++i)
    text += cat(i == 0 ? "" : " ", "Some ", nouns[i % 10], " is s", i, ".");
  return {text, "'book.txt'"};
}

int64_t count_words(const std::string& text) {
  std::istringstream words(text);
  std::string word;
  int64_t count = 0;
  while (words >> word) ++count;
  return count;
}

std::vector<std::string> numbers_of(const TextItem& item) {
  std::vector<std::string> numbers;
  std::istringstream parts(item.answer);
  for (std::string part; parts >> part;) numbers.push_back(part.substr(0, 6));
  return numbers;
}

// The share of the text's sentences that stand before the needle.
double depth_in(const TextItem& item, const std::string& number) {
  const auto dots = [](std::string_view text) { return std::count(text.begin(), text.end(), '.'); };
  const size_t begin = item.prompt.find("\n\n"), end = item.prompt.find("\n\nQuestion");
  const std::string text = item.prompt.substr(begin, end - begin);
  const auto all = static_cast<double>(dots(text)) - 1;
  return static_cast<double>(dots(text.substr(0, text.find(number)))) / all;
}

}  // namespace

TEST_CASE("needle: it stands at its depth, and the text is as long as fits") {
  const Haystack haystack = hundred_sentences();
  for (const double depth : {0.0, 0.25, 0.5, 1.0}) {
    CAPTURE(depth);
    const NeedlePlace place{NeedleKind::single, 300, depth, 0};
    const TextItem item = needle_item(haystack, place, 7, count_words);
    CHECK(depth_in(item, item.answer) == doctest::Approx(depth).epsilon(0.02));
    // The largest text: another sentence of four words would not fit.
    const int64_t tokens = count_words(item.prompt) + item.max_tokens;
    CHECK(tokens <= 300);
    CHECK(tokens + 4 > 300);
    CHECK(item.stops == std::vector<std::string>{"\n"});
    CHECK(item.where == cat("'book.txt': single, 300 tokens, depth ", depth * 100, "%, sample 0"));
  }
}

TEST_CASE("needle: a text longer than the given one begins again") {
  const NeedlePlace place{NeedleKind::single, 1000, 0.5, 0};
  const TextItem item = needle_item(hundred_sentences(), place, 0, count_words);
  const size_t first = item.prompt.find("is s99.");
  REQUIRE(first != std::string::npos);
  CHECK(item.prompt.find("is s0.", first) != std::string::npos);
}

TEST_CASE("needle: the seed and the place decide, and nothing else") {
  const Haystack haystack = hundred_sentences();
  const auto answer = [&](uint64_t seed, uint64_t sample, int64_t length, double depth) {
    const NeedlePlace place{NeedleKind::single, length, depth, sample};
    const TextItem item = needle_item(haystack, place, seed, count_words);
    CHECK(item.answer == needle_answer(haystack, place, seed));
    return item.answer;
  };
  CHECK(answer(1, 0, 300, 0.5) == answer(1, 0, 300, 0.5));
  CHECK(answer(1, 0, 300, 0.5) != answer(2, 0, 300, 0.5));
  CHECK(answer(1, 0, 300, 0.5) != answer(1, 1, 300, 0.5));
  CHECK(answer(1, 0, 300, 0.5) != answer(1, 0, 400, 0.5));
  CHECK(answer(1, 0, 300, 0.5) != answer(1, 0, 300, 0.25));
}

TEST_CASE("needle: keys hide four numbers and ask for one, values ask for three of one word") {
  const Haystack haystack = hundred_sentences();
  const auto needles = [](const TextItem& item) {
    size_t count = 0;
    for (size_t at = 0; (at = item.prompt.find("The number for", at)) != std::string::npos; ++at)
      ++count;
    return count;
  };
  const TextItem keys = needle_item(haystack, {NeedleKind::keys, 300, 0.5, 0}, 3, count_words);
  CHECK(numbers_of(keys).size() == 1);
  CHECK(needles(keys) == 4 + 1);  // and the beginning of the answer
  const TextItem values = needle_item(haystack, {NeedleKind::values, 300, 0.5, 0}, 3, count_words);
  CHECK(numbers_of(values).size() == 3);
  CHECK(needles(values) == 3);
  for (const std::string& number : numbers_of(values)) {
    CHECK(values.prompt.find(number) != std::string::npos);
  }
  CHECK(values.prompt.ends_with("\" are"));
}

TEST_CASE("needle: a number counts where it stands by itself") {
  TextItem item;
  item.answer = "123456";
  const auto right = [&](std::string_view text) { return grade_needle(item, text).right[0] == 1; };
  CHECK(right(" 123456."));
  CHECK(right("It is 123456"));
  CHECK_FALSE(right(" 1234567"));
  CHECK_FALSE(right(" 0123456"));
  CHECK(right(" 1234567 or 123456"));
  CHECK_FALSE(right(" 12345"));
  item.answer = "123456, 654321, 111111";
  CHECK(right(" 654321, 111111 and 123456"));
  const TextGrade two = grade_needle(item, " 111111 and 654321");
  CHECK(two.right[0] == 0);
  CHECK(two.answers == std::vector<std::string>{"654321, 111111"});
}

TEST_CASE("needle: places come kind by kind, then by length, depth and sample") {
  const std::vector<NeedlePlace> places =
      needle_places({{256, 512}, 3, {NeedleKind::single, NeedleKind::keys}, 2, 0});
  REQUIRE(places.size() == 24);
  CHECK(places[0].depth == 0);
  CHECK(places[1].sample == 1);
  CHECK(places[2].depth == 0.5);
  CHECK(places[6].length == 512);
  CHECK(places[12].kind == NeedleKind::keys);
  CHECK(needle_places({{256}, 1, {NeedleKind::single}, 1, 0})[0].depth == 0.5);
}

TEST_CASE("needle: a text without words and a length without room are refused") {
  CHECK(error_of([] { Haystack("1 2 3. A b c.", "'t.txt'"); }) ==
        "'t.txt': has 0 different words of 5 small letters and more, expected 8");
  CHECK(
      error_of([] {
        needle_item(hundred_sentences(), {NeedleKind::single, 40, 0.5, 0}, 0, count_words);
      }) ==
      "'book.txt': single, 40 tokens, depth 50%, sample 0: the question and one sentence take more "
      "tokens");
  CHECK(error_of([] { parse_needle_kind("value"); }, ErrorKind::usage) ==
        "is 'value', expected single, keys or values");
}

}  // namespace fp8kv
