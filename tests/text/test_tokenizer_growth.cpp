// Tokenizer steps that make a text much longer end with an error before memory runs out.
#include <string>

#include <doctest/doctest.h>

#include "support/expect_error.h"
#include "support/models/small_tokenizer.h"
#include "text/models/growth_limit.h"

namespace fp8kv {
namespace {

// A Sequence under `key` that repeats `step` `times` times.
std::string sequence(const std::string& key, const std::string& step, int times) {
  std::string steps;
  for (int i = 0; i < times; ++i) steps += (i > 0 ? "," : "") + step;
  return cat(R"({"type":"Sequence",")", key, "\":[", steps, "]}");
}

const std::string kDoubles = R"({"type":"Replace","pattern":{"String":"a"},"content":"aa"})";
const std::string kByteLevel =
    R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false})";

std::string refusal_of(const test::SmallTokenizer& small, const std::string& text) {
  const Tokenizer tokenizer = small.load();
  return test::error_of([&] { tokenizer.encode(text, false); });
}

}  // namespace

TEST_CASE("tokenizer growth: normalizers that double a text forty times end at the limit") {
  test::SmallTokenizer small;
  small.normalizer = sequence("normalizers", kDoubles, 40);
  CHECK(refusal_of(small, std::string(1000, 'a'))
            .ends_with("/tokenizer.json': normalizer: makes more than 1.03 MiB of 1,000 bytes, "
                       "expected at most 32 times as many and 1.00 MiB"));
  small.normalizer = sequence("normalizers", R"({"type":"ByteLevel"})", 40);
  CHECK(refusal_of(small, "\xc3\xa9").find(": normalizer: makes more than 1.00 MiB of 2 bytes") !=
        std::string::npos);
}

TEST_CASE("tokenizer growth: one step with a long content ends before it is made") {
  test::SmallTokenizer small;
  const std::string content(1 << 16, 'b');
  small.normalizer =
      cat(R"({"type":"Replace","pattern":{"String":"a"},"content":")", content, "\"}");
  CHECK(refusal_of(small, std::string(1000, 'a')).find("makes more than 1.03 MiB") !=
        std::string::npos);
  const std::string longer(1 << 21, 'b');
  small.normalizer = cat(R"({"type":"Prepend","prepend":")", longer, "\"}");
  CHECK(refusal_of(small, "a").find("makes more than 1.00 MiB of 1 byte,") != std::string::npos);
}

TEST_CASE("tokenizer growth: pre-tokenizers that spell bytes again and again end at the limit") {
  test::SmallTokenizer small;
  small.pre_tokenizer = sequence("pretokenizers", kByteLevel, 40);
  CHECK(
      refusal_of(small, "\xc3\xa9").find(": pre_tokenizer: makes more than 1.00 MiB of 2 bytes") !=
      std::string::npos);
}

TEST_CASE("tokenizer growth: decoders that double a token forty times end at the limit") {
  test::SmallTokenizer small;
  for (const char* pattern : {R"({"String":"a"})", R"({"Regex":"a"})"}) {
    const std::string step = cat(R"({"type":"Replace","pattern":)", pattern, R"(,"content":"aa"})");
    small.decoder = sequence("decoders", step, 40);
    const Tokenizer tokenizer = small.load();
    const std::string message =
        test::error_of([&] { tokenizer.decode(std::vector<int32_t>{1}, false); });
    CHECK(message.find(": decoder: makes more than 1.00 MiB of 2 bytes, expected at most") !=
          std::string::npos);
  }
}

TEST_CASE("tokenizer growth: no step that is published comes near the limit") {
  test::SmallTokenizer small;
  small.normalizer =
      cat(R"({"type":"Sequence","normalizers":[{"type":"NFKD"},)", R"({"type":"ByteLevel"}]})");
  small.options = R"("unk_token":"<unk>")";
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "\uFDFA";
  CHECK_NOTHROW(small.load().encode(text, false));
}

TEST_CASE("growth limit: any text may have a megabyte more, and then so many times its length") {
  const std::string where = "here";
  GrowthLimit limit(100, where);
  CHECK_NOTHROW(limit.check(GrowthLimit::kAnyText + 100 * GrowthLimit::kTimes));
  CHECK_THROWS_AS(limit.check(GrowthLimit::kAnyText + 101 * GrowthLimit::kTimes), Error);
  limit.add_given(1);
  CHECK_NOTHROW(limit.check(GrowthLimit::kAnyText + 101 * GrowthLimit::kTimes));
  CHECK_THROWS_AS(limit.check(SIZE_MAX), Error);
}

}  // namespace fp8kv
