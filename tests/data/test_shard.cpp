#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "data/shard.h"
#include "support/expect_error.h"

namespace fp8kv {
namespace {

// Four documents with 3, 1, 2 and 1 windows. Window i has i + 1 tokens.
Windows seven_windows() {
  Windows windows;
  windows.document = {0, 0, 0, 1, 2, 2, 3};
  windows.documents = 4;
  for (int32_t i = 0; i < 7; ++i) {
    windows.ids.emplace_back(static_cast<size_t>(i + 1), i);
    windows.tokens += static_cast<uint64_t>(i + 1);
  }
  windows.files = {{"a.txt", 10, "aa"}};
  windows.chat_templates = {"chat.jinja"};
  return windows;
}

std::vector<int32_t> numbers(const Windows& windows) {
  std::vector<int32_t> first;
  for (const auto& window : windows.ids) first.push_back(window.front());
  return first;
}

TEST_CASE("shard: every n-th window is taken, and documents count with their first") {
  Windows windows = seven_windows();
  const ShardNote note = take_shard(windows, {1, 3});
  CHECK(numbers(windows) == std::vector<int32_t>{1, 4});
  CHECK(windows.tokens == 2 + 5);
  CHECK(windows.documents == 1);  // the third document: window 1 is the first document's second
  CHECK(windows.files == std::vector<DataFile>{{"a.txt", 10, "aa"}});
  CHECK(windows.chat_templates == std::vector<std::string>{"chat.jinja"});
  CHECK(note == ShardNote{3, {1}, 4, 7, 28});
}

TEST_CASE("shard: the shards of any split have each window once and add up to the whole") {
  for (uint64_t of = 2; of <= 7; ++of) {
    std::vector<int> taken(7);
    uint64_t documents = 0, tokens = 0;
    for (uint64_t index = 0; index < of; ++index) {
      Windows windows = seven_windows();
      take_shard(windows, {index, of});
      for (const int32_t number : numbers(windows)) ++taken[static_cast<size_t>(number)];
      documents += windows.documents;
      tokens += windows.tokens;
    }
    CHECK(taken == std::vector<int>(7, 1));
    CHECK(documents == 4);
    CHECK(tokens == 28);
  }
}

TEST_CASE("shard: the one shard of one is the whole, and says nothing") {
  Windows windows = seven_windows();
  CHECK(take_shard(windows, {0, 1}) == ShardNote{});
  CHECK(windows.ids.size() == 7);
}

TEST_CASE("shard: only two whole numbers in order are one") {
  const auto shard = shard_from_text("2/8");
  REQUIRE(shard.has_value());
  CHECK(shard->index == 2);
  CHECK(shard->of == 8);
  for (const char* text : {"", "2", "2/", "/8", "8/8", "-1/8", "+1/8", "1/8 ", " 1/8", "1/0",
                           "0/18446744073709551616", "1:8", "1.5/8"}) {
    CAPTURE(text);
    CHECK_FALSE(shard_from_text(text).has_value());
  }
}

TEST_CASE("shard: one without windows is refused") {
  Windows windows = seven_windows();
  CHECK(test::error_of(
            [&] {
              take_shard(windows, {7, 8});
            },
            ErrorKind::usage) == "the data gives only 7 windows, so this shard has none");
}

}  // namespace
}  // namespace fp8kv
