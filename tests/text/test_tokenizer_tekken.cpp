// Mistral's tekken.json. scripts/check_tokenizers compares published files with mistral-common.
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"
#include "text/tokenizer.h"

namespace fp8kv {
namespace {

using Ids = std::vector<int32_t>;

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k) {
      bits = bits << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    }
    for (size_t k = 0; k < 4; ++k) {
      text += i + k > bytes.size() ? '=' : kDigits[bits >> (18 - 6 * k) & 63];
    }
  }
  return text;
}

struct Tekken {
  std::vector<std::string> tokens = {"he", "ll", "hell", "lo", " w", "aa", "aaa", "\u00e9", "more"};
  std::string version = "v11";
  std::string special = R"([{"rank":0,"token_str":"<unk>","is_control":true},
      {"rank":1,"token_str":"<s>","is_control":true}, {"rank":2,"token_str":"</s>","is_control":true},
      {"rank":3,"token_str":"[INST]","is_control":true}])";
  std::string counts = R"("default_vocab_size":270,"default_num_special_tokens":6)";

  std::string text() const {
    std::string vocab;
    for (size_t rank = 0; rank < 256 + tokens.size(); ++rank) {
      const std::string token =
          rank < 256 ? std::string(1, static_cast<char>(rank)) : tokens[rank - 256];
      vocab += cat(rank == 0 ? "" : ",", R"({"rank":)", rank, R"(,"token_bytes":")", base64(token),
                   R"(","token_str":null})");
    }
    return cat(
        R"({"config":{"pattern":"[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+|\\s+",)",
        counts, R"(,"version":")", version, R"("},"vocab":[)", vocab, "]",
        special.empty() ? "" : R"(,"special_tokens":)", special, "}");
  }
  Tokenizer load() const {
    const test::TempDir dir;
    dir.write("tekken.json", text());
    return std::move(*Tokenizer::find_in(dir.path()));
  }
  std::string refusal() const {
    const std::string message = test::error_of([&] { load(); });
    const size_t at = message.find("tekken.json'");
    CHECK(at != message.npos);
    return at == message.npos ? message : message.substr(at + 14);
  }
};

}  // namespace

// The ids are those of mistral-common 1.13.
TEST_CASE(
    "tekken: pairs are joined by the rank of what they make, and words that are tokens whole") {
  const Tokenizer tokenizer = Tekken().load();
  const auto ids = [&](std::string_view text) { return tokenizer.encode(text, false); };
  CHECK(ids("hello") == Ids{264, 117});
  CHECK(ids("hell") == Ids{264});
  CHECK(ids("shell world") == Ids{121, 264, 266, 117, 120, 114, 106});
  CHECK(ids("aaaaa") == Ids{267, 268});
  CHECK(ids("aaaaaa") == Ids{267, 267, 267});
  CHECK(ids("a\u00e9\U0001F600") == Ids{103, 269, 246, 165, 158, 134});
  CHECK(ids("1 hello, 22") == Ids{55, 38, 264, 117, 50, 38, 56, 56});
  CHECK(tokenizer.encode("hell", true) == Ids{1, 264});
  CHECK(tokenizer.decode(Ids{1, 121, 264, 266, 117}, true) == "shell wo");
}

TEST_CASE("tekken: special tokens come first, up to their number, and are found in text") {
  const Tokenizer tokenizer = Tekken().load();
  CHECK(tokenizer.encode("[INST]hell</s>", false) == Ids{3, 264, 2});
  CHECK(tokenizer.token(5) == "<SPECIAL_5>");
  CHECK(tokenizer.vocab_size() == 270);
  Tekken old;
  old.version = "v3";
  old.special = "";
  old.counts = R"("default_vocab_size":284,"default_num_special_tokens":20)";
  CHECK(old.load().token(19) == "[TOOL_CONTENT]");
}

TEST_CASE("tekken: refuses what is not whole, by name") {
  Tekken late;
  late.special = "";
  CHECK(late.refusal() ==
        "config.version: is 'v11', and there are no special_tokens, which files "
        "later than v7 list");
  Tekken few;
  few.counts = R"("default_vocab_size":280,"default_num_special_tokens":6)";
  CHECK(few.refusal() ==
        "vocab: has 265 tokens, expected what default_vocab_size has beyond "
        "special tokens, 274, and no fewer than 256");
  Tekken twice;
  twice.tokens[3] = "ll";
  CHECK(twice.refusal() == "the token of rank 259, 'll', is there already");
  Tekken crowded;
  crowded.counts = R"("default_vocab_size":266,"default_num_special_tokens":2)";
  CHECK(crowded.refusal() ==
        "has 4 special tokens, expected no more than default_num_special_tokens, 2");
  Tekken nameless;
  nameless.special = R"([{"rank":0,"token_str":"<unk>"}])";
  CHECK(nameless.refusal() == "has no special token '<s>', which is put before a text");
}

}  // namespace fp8kv
