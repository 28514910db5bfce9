// Windows of documents, and the figures and messages about their files.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"
#include "data/dataset.h"
#include "data/read_data.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;
using test::byte_encoder;
using test::kPrefix;
using test::read;
using test::text_of;
using Outcome = test::DataOutcome;
using Texts = std::vector<std::string>;

TEST_CASE("dataset: a text is one document, cut into windows that each start as a prompt does") {
  const test::TempDir folder;
  const fs::path file = folder.write("a.txt", "abcdefghij");
  const Outcome outcome = read({file}, {.max_windows = 10, .seq_len = 5});
  CHECK(outcome.texts() == Texts{"abcd", "efgh", "ij"});
  CHECK(outcome.windows.documents == 1);
  CHECK(outcome.windows.tokens == 13);
  CHECK(outcome.said ==
        cat(quote(file.string()), ": plain text, took 1 document, 3 windows, 13 tokens\nwarning: ",
            quote(file.string()), " gives 3 windows, where up to 10 are taken by default\n"));
}

TEST_CASE("dataset: reading stops when the windows are full, and says so") {
  const test::TempDir folder;
  const fs::path first = folder.write("a.txt", "abcdefghij");
  const fs::path second = folder.write("b.txt", "unused");
  const Outcome outcome = read({first, second}, {.max_windows = 2, .seq_len = 5});
  CHECK(outcome.texts() == Texts{"abcd", "efgh"});
  CHECK(outcome.windows.files.size() == 1);
  CHECK(outcome.said == cat(quote(first.string()),
                            ": plain text, took 1 document, 2 windows, 10 tokens; left the rest, "
                            "as all windows are full\n",
                            quote(second.string()), ": not opened, as all windows are full\n"));
}

TEST_CASE("dataset: a file that is used up by the last window leaves no rest") {
  const test::TempDir folder;
  const fs::path file = folder.write("a.txt", "abcdefgh");
  CHECK(read({file}, {.max_windows = 2, .seq_len = 5}).said ==
        cat(quote(file.string()), ": plain text, took 1 document, 2 windows, 10 tokens\n"));
}

TEST_CASE("dataset: empty records are skipped and counted") {
  const test::TempDir folder;
  const fs::path file =
      folder.write("a.jsonl", "{\"text\": \"\"}\n{\"text\": \"one\"}\n{\"input_ids\": []}\n");
  const Outcome outcome = read({file}, {.max_windows = 1});
  CHECK(outcome.texts() == Texts{"one"});
  CHECK(outcome.windows.documents == 1);
  CHECK(outcome.said == cat(quote(file.string()),
                            ": JSON lines with 'text', took 1 document, 1 window, 4 tokens; "
                            "skipped 1 empty document; left the rest, as all windows are full\n"));
}

TEST_CASE("dataset: files are counted and digested whole, whatever part is used") {
  const test::TempDir folder;
  const std::string text = "abcdefghij";
  const fs::path file = folder.write("a.txt", text);
  Sha256 digest;
  digest.add(text);
  const Outcome outcome = read({file}, {.max_windows = 1, .seq_len = 3});
  CHECK(outcome.windows.files == std::vector<DataFile>{{"a.txt", 10, digest.hex()}});
}

TEST_CASE("dataset: a file name that is not UTF-8 is escaped, so that it can stand in JSON") {
  const test::TempDir folder;
  const Outcome outcome = read({folder.write("caf\xE9.txt", "one")});
  CHECK(outcome.windows.files[0].name == "caf\\xe9.txt");
}

TEST_CASE("dataset: standard input is read like a file without a name") {
  const test::TempDir folder;
  const fs::path file = folder.write("in", "{\"text\": \"one\"}\n{\"text\": \"two\"}\n");
  const int saved = ::dup(STDIN_FILENO);
  const int input = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  ::dup2(input, STDIN_FILENO);
  const Outcome outcome = read({"-"}, {.max_windows = 2});
  ::dup2(saved, STDIN_FILENO);
  ::close(saved);
  ::close(input);
  CHECK(outcome.texts() == Texts{"one", "two"});
  CHECK(outcome.said ==
        "standard input: JSON lines with 'text', took 2 documents, 2 windows, 8 tokens\n");
  CHECK(outcome.windows.files[0].name == "-");
  CHECK(outcome.windows.files[0].bytes == 32);
}

TEST_CASE("dataset: fewer windows than asked for are an error when exactly so many are needed") {
  const test::TempDir folder;
  const fs::path file = folder.write("a.txt", "abcdefghij");
  const WindowOptions exact{.max_windows = 4, .shortage = Shortage::refused, .seq_len = 5};
  Log log(Verbosity::quiet);
  try {
    read_windows(std::vector<fs::path>{file}, byte_encoder(), exact, log);
    FAIL_CHECK("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.what() == quote(file.string()) + " gives 3 of the 4 windows asked for");
    CHECK(error.help() == "add data, or pass max_windows 3 to use what is there");
  }
}

TEST_CASE("dataset: the first windows are those of a run that asked for no more") {
  const test::TempDir folder;
  const std::vector<fs::path> files = {folder.write("a.jsonl",
                                                    "{\"text\": \"abcdefghij\"}\n"
                                                    "{\"text\": \"kl\"}\n"),
                                       folder.write("b.txt", "mnopq"), folder.write("c.txt", "r")};
  const Windows all = read(files, {.max_windows = 8, .seq_len = 5}).windows;
  REQUIRE(all.ids.size() == 7);
  for (size_t count = 1; count <= 7; ++count) {
    CAPTURE(count);
    const Windows asked = read(files, {.max_windows = count, .seq_len = 5}).windows;
    const Windows first = first_windows(all, count);
    CHECK(first.ids == asked.ids);
    CHECK(first.document == asked.document);
    CHECK(first.documents == asked.documents);
    CHECK(first.tokens == asked.tokens);
    CHECK(first.files == asked.files);
  }
}

TEST_CASE("dataset: the first three files stand for many in a message") {
  CHECK(names_of(std::vector<fs::path>{"-"}) == "standard input");
  CHECK(names_of(std::vector<fs::path>{"a", "b", "c", "d"}) == "'a', 'b', 'c' and 'd'");
  CHECK(names_of(std::vector<fs::path>{"a", "b", "c", "d", "e"}) ==
        "'a', 'b', 'c' and 2 other files");
}

TEST_CASE("dataset: a long text is encoded in pieces that are cut where a line begins") {
  const test::TempDir folder;
  std::string text;
  while (text.size() < 2 * kEncodedAtOnce + 1000) text += "a line of no great interest\n";
  const fs::path file = folder.write("a.txt", text);
  std::vector<std::string> pieces;
  TextEncoder encoder = byte_encoder();
  encoder.encode = [&](std::string_view piece) {
    pieces.emplace_back(piece);
    return byte_encoder().encode(piece);
  };
  Log log(Verbosity::quiet);
  const std::vector<fs::path> files{file};
  const Windows all = read_windows(files, encoder, {.max_windows = 1 << 20, .seq_len = 1001}, log);
  std::string joined, from_windows;
  for (const std::string& piece : pieces) {
    CHECK(piece.size() <= kEncodedAtOnce);
    CHECK(piece.starts_with("a line"));
    joined += piece;
  }
  for (const auto& window : all.ids) from_windows += text_of(window);
  CHECK(pieces.size() == 3);
  CHECK((joined == text));
  CHECK((from_windows == text));
  // Only the last window may be short, because pieces are joined without a seam.
  for (size_t i = 0; i + 1 < all.ids.size(); ++i) REQUIRE(all.ids[i].size() == 1001);

  pieces.clear();
  read_windows(files, encoder, {.max_windows = 3, .seq_len = 1001}, log);
  CHECK(pieces.size() == 1);
}

TEST_CASE("dataset: text without lines or spaces is cut between two characters") {
  const test::TempDir folder;
  std::string text = "x";
  while (text.size() <= kEncodedAtOnce) text += "\xC3\xA9";
  TextEncoder encoder = byte_encoder();
  bool whole_characters = true;
  encoder.encode = [&](std::string_view piece) {
    whole_characters = whole_characters && is_utf8(piece);
    return std::vector<int32_t>{1};
  };
  Log log(Verbosity::quiet);
  const std::vector<fs::path> files{folder.write("a.txt", text)};
  CHECK(read_windows(files, encoder, {}, log).ids[0] == std::vector<int32_t>{kPrefix, 1, 1});
  CHECK(whole_characters);
}

}  // namespace
}  // namespace fp8kv
