// Data files that are refused, with the place and the reason.
#include <cstddef>
#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include "base/error.h"
#include "base/text.h"
#include "data/data_source.h"
#include "data/dataset.h"
#include "data/read_data.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;
using test::error_for;
using test::error_in;
using test::texts_in;

TEST_CASE("dataset: ids longer than a window or outside the vocabulary are refused") {
  const test::TempDir folder;
  const fs::path file =
      folder.write("a.jsonl", "{\"input_ids\": [3, 1]}\n{\"input_ids\": [3, 1, 2]}");
  const std::string where = quote(file.string());
  CHECK(error_in({file}, {.seq_len = 2}) ==
        cat(where, ":2: input_ids: has 3 tokens, expected at most 2"));
  CHECK(error_for("a.jsonl", R"({"input_ids": [0, 1001]})") ==
        "FILE:1: input_ids[1]: is 1001, expected an id of the vocabulary, 0 to 1000");
  CHECK(error_for("a.jsonl", R"({"input_ids": [-1]})") ==
        "FILE:1: input_ids[0]: is -1, expected an id of the vocabulary, 0 to 1000");
  CHECK(error_for("a.jsonl", R"({"input_ids": [0.5]})") ==
        "FILE:1: input_ids[0]: is a number (0.5), expected an integer");
  CHECK(error_for("a.jsonl", R"({"input_ids": "0 1"})") ==
        "FILE:1: input_ids: is \"0 1\", expected an array");
}

TEST_CASE("dataset: a broken JSON line is named with file, line and column") {
  CHECK(error_for("a.jsonl", "{\"text\": \"one\"}\n\n{\"text\": \"two\n") ==
        "FILE:3: not valid JSON at line 3, column 14: invalid string: missing closing quote");
  CHECK(error_for("a.jsonl", "{\"text\": \"one\"}\n{\"text\": 1, \"text\": 2}\n") ==
        "FILE:2: the key 'text' is there twice");
}

TEST_CASE("dataset: a record of no known form lists what it has and what is known") {
  constexpr const char* kKnown =
      "expected input_ids, text, article, messages, conversations, prompt+completion, "
      "instruction+[input]+output, question+answer or turns";
  CHECK(error_for("a.jsonl", R"({"body": "x", "text": null})") ==
        cat("FILE:1: a record without a known field: has 'body' and 'text' (null), ", kKnown));
  CHECK(error_for("a.json", "[{\"text\": \"x\"}, {}]") ==
        cat("FILE: [1]: a record without a known field: has none, ", kKnown));
  CHECK(error_for("a.jsonl", "{\"text\": \"x\"}\n5\n") == "FILE:2: is 5, expected an object");
}

TEST_CASE("dataset: a field of another type is named") {
  CHECK(error_for("a.jsonl", R"({"text": ["x"]})") ==
        "FILE:1: text: is an array ([\"x\"]), expected a string");
  CHECK(error_for("a.jsonl", R"({"messages": "x"})") ==
        "FILE:1: messages: is \"x\", expected an array");
  CHECK(error_for("a.jsonl", R"({"messages": [{"role": "user", "contents": "x"}]})") ==
        "FILE:1: messages[0]: the key 'content' is missing (did you mean 'contents'?)");
  CHECK(error_for("a.jsonl", R"({"messages": [["x"]]})") ==
        "FILE:1: messages[0]: is an array ([\"x\"]), expected an object");
  CHECK(error_for("a.jsonl",
                  R"({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})") ==
        "FILE:1: messages[0].content[0].type: is 'image_url', expected 'text'");
}

TEST_CASE("dataset: bytes that are not UTF-8 are named with their offset") {
  CHECK(error_for("a.txt", "one\ncaf\xE9\n") == "FILE: not valid UTF-8 at byte 7, line 2");
  CHECK(error_for("a.jsonl", "{\"text\": \"one\"}\n{\"text\": \"caf\xE9\"}\n") ==
        "FILE: not valid UTF-8 at byte 29, line 2");
}

TEST_CASE("dataset: characters across the blocks of the check are whole") {
  // Characters of 3 bytes do not align with the block size, a power of two.
  std::string text;
  while (text.size() < (size_t(16) << 20) + 9) text += "\xE2\x82\xAC";
  CHECK(texts_in("a.txt", text)[0].starts_with("\xE2\x82\xAC"));
  CHECK(error_for("a.txt", text + "\xE2\x82") ==
        cat("FILE: not valid UTF-8 at byte ", text.size(), ", line 1"));
}

TEST_CASE("dataset: what is empty, missing, packed or a folder is refused") {
  const test::TempDir folder;
  CHECK(error_for("a.txt", "") == "FILE: is empty");
  CHECK(error_for("a.jsonl", " \r\n\n") == "FILE: is empty");
  CHECK(error_for("a.json", "[]") == "no text in FILE: every document is empty");
  CHECK(error_for("a.txt.bz2", "BZh91AY") ==
        "FILE: is bzip2 data, expected gzip or Zstandard, or what is not packed");
  CHECK(error_for("a.parquet", "PAR1 and so on") ==
        "FILE: does not end as a Parquet file does: it is cut short");
  CHECK(error_for("a.txt", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n") ==
        "FILE: is a git-LFS pointer, not the file itself");
  CHECK(error_in({folder.path()}) ==
        cat(quote(folder.path().string()), ": is a folder, expected a file"));
  const fs::path good = folder.write("good.txt", "abc");
  CHECK(error_in({good, folder / "missing.txt"}, {.max_windows = 1}) ==
        cat(quote((folder / "missing.txt").string()), ": no such file"));
}

TEST_CASE("dataset: a window must have room beside the prefix") {
  const test::TempDir folder;
  CHECK(error_in({folder.write("a.txt", "abc")}, {.seq_len = 1}, ErrorKind::usage) ==
        "a window of 1 token has no room for text: every prompt starts with 1 token of its own");
}

TEST_CASE("dataset: a file that is cut short while it is read is an error, not a signal") {
  const test::TempDir temp;
  const fs::path file = temp.write("a.txt", std::string(100'000, 'x'));
  const DataSource source = open_data(file);
  fs::resize_file(file, 10);
  CHECK(source.text[90'000] == 0);
  CHECK(test::error_of([&] { source.check_unchanged(); }) ==
        cat(quote(file.string()), ": changed while it was read: had 100,000 bytes, has 10"));
}

}  // namespace
}  // namespace fp8kv
