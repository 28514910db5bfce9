// Loops over user input check for interrupts. The tests count the checks, so that they need no
// clock. The slowest loops take about 100 ns per byte.
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/interrupt.h"
#include "base/log.h"
#include "base/text.h"
#include "data/dataset.h"
#include "json/json.h"
#include "support/temp_dir.h"
#include "text/tokenizer.h"

namespace fp8kv {
namespace {

constexpr size_t kBytesBetween = size_t{128} << 10;

// The number of interrupt checks in `work`.
uint64_t looks(const std::function<void()>& work) {
  const uint64_t before = interrupt_checks();
  work();
  return interrupt_checks() - before;
}

Tokenizer tokenizer_with(const std::string& normalizer, const std::string& pre_tokenizer,
                         const test::TempDir& temp) {
  return Tokenizer::load(temp.write(
      "tokenizer.json",
      cat(R"({"version": "1.0", "added_tokens": [{"id": 3, "content": "<s>", "single_word": false, )"
          R"("lstrip": false, "rstrip": false, "normalized": false, "special": true}], )"
          R"("normalizer": )",
          normalizer, R"(, "pre_tokenizer": )", pre_tokenizer,
          R"(, "post_processor": null, "decoder": null, "model": {"type": "BPE", "unk_token": "?", )"
          R"("vocab": {"?": 0, "a": 1, "aa": 2}, "merges": ["a a"]}})")));
}

std::string repeated(const std::string& piece, size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += piece;
  return text;
}

}  // namespace

TEST_CASE("interrupt: every step of encoding looks for one, whatever the text") {
  const test::TempDir temp;
  const size_t bytes = size_t{1} << 20;
  const struct {
    std::string normalizer, pre_tokenizer, piece;
    size_t steps;  // at least so many steps read the whole text
  } cases[] = {
      {"null", "null", "a", 2},                                       // added tokens, merges
      {"null", "null", "b", 2},                                       // unknown characters
      {R"({"type": "NFC"})", "null", "\xE1\x84\x80\xE1\x85\xA1", 3},  // characters to compose
      {R"({"type": "NFKD"})", "null", "\xC3\xA9", 3},
      {R"({"type": "Lowercase"})", "null", "A", 3},
      {"null",
       R"({"type": "Split", "pattern": {"Regex": "a"}, "behavior": "Isolated", )"
       R"("invert": false})",
       "a", 3},
      {"null", R"({"type": "WhitespaceSplit"})", "a ", 3},
      {"null", R"({"type": "Punctuation", "behavior": "Isolated"})", "a", 3},
      {"null",
       R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "never", )"
       R"("split": true})",
       " ", 3},
  };
  for (const auto& each : cases) {
    CAPTURE(each.normalizer);
    CAPTURE(each.pre_tokenizer);
    CAPTURE(each.piece);
    const Tokenizer tokenizer = tokenizer_with(each.normalizer, each.pre_tokenizer, temp);
    const std::string text = repeated(each.piece, bytes);
    CHECK(looks([&] { tokenizer.encode(text, false); }) >= each.steps * (bytes / kBytesBetween));
  }
}

TEST_CASE("interrupt: decoding looks for one") {
  const test::TempDir temp;
  const Tokenizer tokenizer = tokenizer_with("null", "null", temp);
  const std::vector<int32_t> ids(100'000, 1);
  CHECK(looks([&] { tokenizer.decode(ids, false); }) >= ids.size());
}

TEST_CASE("interrupt: reading JSON looks for one, in one string and in many values") {
  const size_t bytes = size_t{4} << 20;
  const std::string one = '"' + std::string(bytes, 'x') + '"';
  CHECK(looks([&] { Json::parse(one, "one"); }) >= bytes / kBytesBetween);
  const std::string many = '[' + repeated("1,", bytes) + "1]";
  CHECK(looks([&] { Json::parse(many, "many"); }) >= bytes / kBytesBetween);
  CHECK(looks([&] {
          for (size_t line = 1; line <= 1000; ++line) Json::parse_line("{}", line, "lines");
        }) >= 1000);
}

TEST_CASE("interrupt: reading data looks for one, in one line and in many records") {
  const test::TempDir temp;
  const size_t bytes = size_t{8} << 20;
  const TextEncoder nothing{[](std::string_view) { return std::vector<int32_t>(); }, {}, 10};
  const WindowOptions options{.max_windows = 100, .shortage = Shortage::warned_of, .seq_len = 8};
  Log log(Verbosity::quiet);
  const auto read = [&](const std::string& name, const std::string& text) {
    const std::vector<std::filesystem::path> files = {
        temp.write(name, text), temp.write("last.jsonl", "{\"input_ids\": [1]}\n")};
    return looks([&] { read_windows(files, nothing, options, log); });
  };
  CHECK(read("line.txt", std::string(bytes, 'x')) >= bytes / (size_t{1} << 20));
  const std::string record = "{\"text\": \"\"}\n";
  CHECK(read("many.jsonl", repeated(record, bytes / 8)) >= bytes / 8 / record.size());
  const std::string blank(bytes / 64, '\n');
  CHECK(read("blank.jsonl", "{\"text\": \"\"}\n" + blank) >= blank.size());
}

}  // namespace fp8kv
