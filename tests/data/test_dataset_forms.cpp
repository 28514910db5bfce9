// The forms of records and layouts of files that become text or ids.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "data/dataset.h"
#include "data/read_data.h"
#include "data/records.h"
#include "json/json.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;
using test::byte_encoder;
using test::kPrefix;
using test::read;
using test::texts_in;
using Outcome = test::DataOutcome;
using Texts = std::vector<std::string>;

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
}  // namespace fp8kv
