#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "base/digest.h"
#include "data/data_source.h"
#include "data/dataset.h"
#include "data/records.h"
#include "json/json.h"
#include "support/expect_error.h"
#include "support/program/capture_stderr.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;

// Encodes each byte as one id, so that windows can be read back as text. Every prompt starts with
// id 1000.
constexpr int32_t kPrefix = 1000;

TextEncoder byte_encoder() {
  const auto encode = [](std::string_view text) {
    std::vector<int32_t> ids;
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    return ids;
  };
  return {encode, {kPrefix}, 1001};
}

std::string text_of(const std::vector<int32_t>& window) {
  REQUIRE(window.front() == kPrefix);
  std::string text;
  for (size_t i = 1; i < window.size(); ++i) text += static_cast<char>(window[i]);
  return text;
}

struct Outcome {
  Windows windows;
  std::string said;

  std::vector<std::string> texts() const {
    std::vector<std::string> out;
    for (const auto& window : windows.ids) out.push_back(text_of(window));
    return out;
  }
};

Outcome read(const std::vector<fs::path>& files, const WindowOptions& options = {}) {
  Outcome outcome;
  outcome.said = test::stderr_of([&] {
    Log log;
    outcome.windows = read_windows(files, byte_encoder(), options, log);
  });
  return outcome;
}

std::string error_in(const std::vector<fs::path>& files, const WindowOptions& options = {},
                     ErrorKind kind = ErrorKind::input) {
  Log log(Verbosity::quiet);
  return test::error_of([&] { read_windows(files, byte_encoder(), options, log); }, kind);
}

// The texts of the windows in one file.
std::vector<std::string> texts_in(const std::string& name, std::string_view bytes) {
  const test::TempDir folder;
  return read({folder.write(name, bytes)}).texts();
}

// The error for one file, without its path.
std::string error_for(const std::string& name, std::string_view bytes) {
  const test::TempDir folder;
  const fs::path file = folder.write(name, bytes);
  const std::string message = error_in({file});
  const std::string path = quote(file.string());
  const size_t at = message.find(path);
  REQUIRE(at != std::string::npos);
  return message.substr(0, at) + "FILE" + message.substr(at + path.size());
}

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

TEST_CASE("dataset: every form of record in the table becomes text") {
  CHECK(texts_in("a.jsonl", R"({"text": "one"})") == Texts{"one"});
  CHECK(texts_in("a.jsonl", R"({"id": 7, "article": "one", "highlights": "x"})") == Texts{"one"});
  CHECK(texts_in("a.jsonl", R"({"prompt": "one", "completion": "two"})") == Texts{"one\ntwo"});
  CHECK(texts_in("a.jsonl", R"({"instruction": "one", "input": "two", "output": "three"})") ==
        Texts{"one\ntwo\nthree"});
  CHECK(texts_in("a.jsonl", R"({"instruction": "one", "input": "", "output": "three"})") ==
        Texts{"one\nthree"});
  CHECK(texts_in("a.jsonl", R"({"instruction": "one", "output": "three"})") == Texts{"one\nthree"});
  CHECK(texts_in("a.jsonl", R"({"question": "one", "answer": "two"})") == Texts{"one\ntwo"});
  CHECK(texts_in("a.jsonl", R"({"turns": ["one", "two"]})") == Texts{"one\ntwo"});
  CHECK(record_forms().size() == 9);
}

TEST_CASE("dataset: chat records of either spelling are joined as plain text, with one warning") {
  const test::TempDir folder;
  const fs::path file = folder.write(
      "a.jsonl",
      R"({"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]}
{"conversations": [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "yo"}]}
{"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "value": "b"}]}]}
{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": null, "tool_calls": []}]}
)");
  const Outcome outcome = read({file}, {.max_windows = 4});
  CHECK(outcome.texts() ==
        Texts{"user: hi\nassistant: yo", "human: hi\ngpt: yo", "user: a\nb", "user: hi"});
  CHECK(outcome.said ==
        cat("warning: chat records are joined as plain text, 'role: content', without a chat "
            "template\n",
            quote(file.string()), ": JSON lines with 'messages' and 'conversations', took ",
            "4 documents, 4 windows, 60 tokens\n"));
}

// Encodes chats with an id 7 at the end. With `with_prefix` an id 1000 comes first, as templates
// may write it.
TextEncoder chat_encoder(bool with_prefix) {
  TextEncoder encoder = byte_encoder();
  encoder.encode_chat = [with_prefix](const Json& record) {
    const std::string& text = record.at("messages")[0].at("content").as_string();
    std::vector<int32_t> ids = byte_encoder().encode(text);
    if (with_prefix && !ids.empty()) ids.insert(ids.begin(), kPrefix);
    if (!ids.empty()) ids.push_back(7);
    return ids;
  };
  return encoder;
}

TEST_CASE("dataset: every window of a chat begins as the chat does, with the prefix or without") {
  const test::TempDir folder;
  const std::vector<fs::path> files = {
      folder.write("a.jsonl", R"({"messages": [{"content": "abcde"}]})"
                              "\n"
                              R"({"messages": [{"content": ""}]})"
                              "\n"
                              R"({"messages": [{"content": "f"}], "text": null})")};
  Log log(Verbosity::quiet);
  const WindowOptions options = {.max_windows = 9, .seq_len = 4};
  CHECK(read_windows(files, chat_encoder(true), options, log).ids ==
        std::vector<std::vector<int32_t>>{
            {kPrefix, 'a', 'b', 'c'}, {kPrefix, 'd', 'e', 7}, {kPrefix, 'f', 7}});
  const Windows without = read_windows(files, chat_encoder(false), options, log);
  CHECK(without.ids == std::vector<std::vector<int32_t>>{{'a', 'b', 'c', 'd'}, {'e', 7}, {'f', 7}});
  CHECK(without.documents == 2);
  CHECK(without.document == std::vector<uint64_t>{0, 0, 1});
}

TEST_CASE("dataset: ids are taken as they are, one record one window, without a prefix") {
  const test::TempDir folder;
  const fs::path file = folder.write("a.jsonl", "{\"input_ids\": [3, 1, 2]}\n{\"input_ids\": [0]}");
  const Outcome outcome = read({file}, {.max_windows = 2, .seq_len = 3});
  CHECK(outcome.windows.ids == std::vector<std::vector<int32_t>>{{3, 1, 2}, {0}});
  CHECK(outcome.windows.tokens == 4);
}

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

TEST_CASE("dataset: the layout follows from the contents where the name leaves it open") {
  const Texts both{"one", "two"};
  constexpr const char* kLines = "{\"text\": \"one\"}\n{\"text\": \"two\"}\n";
  constexpr const char* kArray = "[\n  {\"text\": \"one\"},\n  {\"text\": \"two\"}\n]";
  for (const char* name : {"a.jsonl", "a.json", "a.data", "a"})
    CHECK(texts_in(name, kLines) == both);
  for (const char* name : {"a.jsonl", "a.json", "a.data", "a"})
    CHECK(texts_in(name, kArray) == both);
  for (const char* name : {"a.json", "a.data"}) {
    CHECK(texts_in(name, "{\n  \"text\": \"one\"\n}\n") == Texts{"one"});
  }
  CHECK(texts_in("a.txt", kLines) == Texts{kLines});
  CHECK(texts_in("a.md", "{curly} text") == Texts{"{curly} text"});
  CHECK(texts_in("a.raw", "[Verse 1]\nla") == Texts{"[Verse 1]\nla"});
}

TEST_CASE("dataset: a byte-order mark, CRLF and blank lines are accepted") {
  CHECK(texts_in("a.jsonl",
                 "\xEF\xBB\xBF\r\n{\"text\": \"one\"}\r\n\r\n  \n{\"text\": \"two\"}\r\n") ==
        Texts{"one", "two"});
  CHECK(texts_in("a.txt", "\xEF\xBB\xBFone\r\ntwo") == Texts{"one\r\ntwo"});
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

TEST_CASE("dataset: files of every form that people have are understood") {
  const struct {
    const char* file;
    const char* layout;
    uint64_t documents;
  } cases[] = {
      {"c4_demo.jsonl", "JSON lines with 'text'", 300},
      {"glaive_toolcall_en_demo.json", "a JSON array with 'conversations'", 300},
      {"gsm8k_test.jsonl", "JSON lines with 'question+answer'", 1319},
      {"mt_bench_question.jsonl", "JSON lines with 'turns'", 80},
      {"tinyshakespeare.txt", "plain text", 1},
      {"v1_sft_demo.jsonl", "JSON lines with 'messages'", 500},
      {"wikitext2_valid.tokens.txt", "plain text", 1},
  };
  for (const auto& known : cases) {
    const auto path = test::shared_data(cat("text/", known.file));
    if (!path) return;
    const Outcome outcome = read({*path}, {.max_windows = 1 << 20});
    INFO(outcome.said);
    CHECK(outcome.said.find(cat(": ", known.layout, ", took ")) != std::string::npos);
    CHECK(outcome.windows.documents == known.documents);
    CHECK(outcome.windows.files[0].bytes == fs::file_size(*path));
    CHECK(outcome.windows.tokens > fs::file_size(*path) / 2);
  }
}

}  // namespace
TEST_CASE("dataset: a file that is cut short while it is read is an error, not a signal") {
  const test::TempDir temp;
  const fs::path file = temp.write("a.txt", std::string(100'000, 'x'));
  const DataSource source = open_data(file);
  fs::resize_file(file, 10);
  CHECK(source.text[90'000] == 0);
  CHECK(test::error_of([&] { source.check_unchanged(); }) ==
        cat(quote(file.string()), ": changed while it was read: had 100,000 bytes, has 10"));
}

}  // namespace fp8kv
