#include <thread>

#include <doctest/doctest.h>

#include "base/rng.h"
#include "json/json.h"
#include "support/expect_error.h"
#include "support/models/small_tokenizer.h"
#include "support/skip.h"
#include "support/temp_dir.h"
#include "text/tokenizer.h"

namespace fp8kv {
namespace {

using Ids = std::vector<int32_t>;

Ids ids_from(const Json& json) {
  Ids ids;
  for (size_t i = 0; i < json.size(); ++i) ids.push_back(static_cast<int32_t>(json[i].as_int()));
  return ids;
}

TEST_CASE("tokenizer: agrees with the tokenizers library on the committed cases") {
  const Json file = Json::read(test::source_dir() / "tests/golden/tokenizer-cases.json");
  const test::TempDir dir;
  const Json cases = file.at("cases");
  REQUIRE(cases.size() > 0);
  for (size_t i = 0; i < cases.size(); ++i) {
    const Json one = cases[i];
    CAPTURE(one.at("name").as_string());
    const Tokenizer tokenizer = Tokenizer::load(
        dir.write("tokenizer.json", JsonWriter().value(one.at("tokenizer")).text()));
    std::vector<std::string> texts;
    for (const Json& list : {file.at("texts"), one.at("texts")}) {
      for (size_t k = 0; k < list.size(); ++k) texts.push_back(list[k].as_string());
    }
    const Json expected = one.at("expected");
    REQUIRE(expected.size() == texts.size());
    for (size_t k = 0; k < texts.size(); ++k) {
      CAPTURE(texts[k]);
      const Json row = expected[k];  // [ids, ids_special or null, decoded, decoded_skip or null]
      const Ids ids_special = ids_from(row[1].is_null() ? row[0] : row[1]);
      CHECK(tokenizer.encode(texts[k], false) == ids_from(row[0]));
      CHECK(tokenizer.encode(texts[k], true) == ids_special);
      CHECK(tokenizer.decode(ids_special, false) == row[2].as_string());
      CHECK(tokenizer.decode(ids_special, true) ==
            (row[3].is_null() ? row[2] : row[3]).as_string());
    }
  }
}

TEST_CASE("tokenizer: the bytes of tokens, joined, are the text of all of them") {
  const Json file = Json::read(test::source_dir() / "tests/golden/tokenizer-cases.json");
  const test::TempDir dir;
  const Json cases = file.at("cases");
  size_t compared = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    const Json one = cases[i];
    CAPTURE(one.at("name").as_string());
    const Tokenizer tokenizer = Tokenizer::load(
        dir.write("tokenizer.json", JsonWriter().value(one.at("tokenizer")).text()));
    for (size_t k = 0; k < one.at("texts").size(); ++k) {
      const Ids ids = tokenizer.encode(one.at("texts")[k].as_string(), false);
      // Behind a first token, since a decoder may drop the space that a text begins with.
      if (ids.size() < 2) continue;
      const std::string whole = tokenizer.decode(ids, false);
      const std::string begin = tokenizer.decode(std::span(ids).first(1), false);
      if (!whole.starts_with(begin)) continue;  // the first is half a character
      std::string joined = begin;
      for (const int32_t id : std::span(ids).subspan(1)) joined += tokenizer.bytes_of(id);
      CHECK(joined == whole);
      ++compared;
    }
  }
  CHECK(compared > 50);
}

TEST_CASE("tokenizer: agrees with the published vectors of real tokenizers") {
  for (const std::string name : {"gpt2", "llama2", "qwen2.5"}) {
    const auto folder = test::shared_data("tokenizers/" + name);
    if (!folder) return;
    CAPTURE(name);
    const Tokenizer tokenizer = Tokenizer::load(*folder / "tokenizer.json");
    const Json vectors = Json::read(*folder / "vectors-llamacpp.json");
    const bool special = vectors.at("add_special_tokens").as_bool();
    const Json cases = vectors.at("cases");
    REQUIRE(cases.size() > 40);
    for (size_t i = 0; i < cases.size(); ++i) {
      const std::string text = cases[i].at("text").as_string();
      CAPTURE(text);
      CHECK(tokenizer.encode(text, special) == ids_from(cases[i].at("ids")));
    }
  }
}

// The text after a prompt, joined from pieces. Each piece must be UTF-8.
std::string streamed(const Tokenizer& tokenizer, std::span<const int32_t> ids, size_t prompt,
                     bool skip) {
  TokenStream stream(tokenizer, ids.first(prompt), skip);
  std::string joined;
  for (const int32_t id : ids.subspan(prompt)) {
    const std::string piece = stream.add(id);
    CHECK(is_utf8(piece));
    joined += piece;
  }
  return joined + stream.finish();
}

void check_streams(const Tokenizer& tokenizer, const Ids& ids) {
  for (const bool skip : {false, true}) {
    const std::string whole = tokenizer.decode(ids, skip);
    for (size_t prompt = 0; prompt <= ids.size(); prompt += 1 + ids.size() / 3) {
      const std::string before = tokenizer.decode(std::span(ids).first(prompt), skip);
      const std::string after = streamed(tokenizer, ids, prompt, skip);
      if (whole.starts_with(before)) {
        CHECK(before + after == whole);
      } else {  // the prompt ends inside a character, or inside an invalid run of bytes
        CHECK(whole.ends_with(after));
        CHECK(whole.size() - after.size() < before.size());
      }
    }
  }
}

TEST_CASE("token stream: the pieces joined are the decoded text, for any ids") {
  Rng rng(1);
  for (const std::string name : {"tokenizers/gpt2", "tokenizers/llama2", "tokenizers/qwen2.5",
                                 "models/stories260K-hf-f32"}) {
    const auto folder = test::shared_data(name);
    if (!folder) return;
    CAPTURE(name);
    const Tokenizer tokenizer = Tokenizer::load(*folder / "tokenizer.json");
    const Ids text =
        tokenizer.encode("Zoë said: 「日本」 👩‍👧 costs 5 €…\n\n  ok", true);
    check_streams(tokenizer, text);
    for (int round = 0; round < 200; ++round) {
      // Low ids are bytes in all four tokenizers.
      const auto limit = static_cast<uint64_t>(round % 2 ? 300 : tokenizer.vocab_size());
      Ids ids(rng.next() % 24);
      for (int32_t& id : ids) id = static_cast<int32_t>(rng.next() % limit);
      CAPTURE(ids);
      check_streams(tokenizer, ids);
    }
  }
}

TEST_CASE("token stream: a character of several tokens is given once it is whole") {
  test::SmallTokenizer small;
  small.options = R"("byte_fallback":true)";
  small.vocab = R"({"a":0,"<0xC3>":1,"<0xA9>":2,"b":3})";
  small.merges = "[]";
  small.decoder = R"({"type":"Sequence","decoders":[{"type":"ByteFallback"},{"type":"Fuse"}]})";
  const Tokenizer tokenizer = small.load();
  TokenStream stream(tokenizer, Ids{0}, false);
  CHECK(stream.add(1) == "");
  CHECK(stream.add(2) == "");  // an invalid byte may follow and spoil the run
  CHECK(stream.add(3) ==
        "\xC3\xA9"
        "b");
  CHECK(stream.add(1) == "");
  CHECK(stream.finish() == "\xEF\xBF\xBD");
}

TEST_CASE("token stream: bytes of a byte-level vocabulary come as soon as they are a character") {
  test::SmallTokenizer small;
  small.options = R"("unk_token":null)";
  small.vocab = R"({"a":0,"Ã":1,"©":2,"â":3})";
  small.merges = "[]";
  small.decoder = R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":false})";
  const Tokenizer tokenizer = small.load();
  TokenStream stream(tokenizer, Ids{}, false);
  CHECK(stream.add(1) == "");
  CHECK(stream.add(2) == "\xC3\xA9");
  CHECK(stream.add(3) == "");
  CHECK(stream.add(0) ==
        "\xEF\xBF\xBD"
        "a");
  CHECK(stream.finish() == "");
}

TEST_CASE("token stream: what the end of the prompt has shown is not shown again") {
  test::SmallTokenizer small;
  small.options = R"("byte_fallback":true)";
  small.vocab = R"({"a":0,"<0x0A>":1,"<0xC3>":2,"<0xA9>":3})";
  small.merges = "[]";
  small.decoder = R"({"type":"Sequence","decoders":[{"type":"ByteFallback"},{"type":"Fuse"}]})";
  const Tokenizer tokenizer = small.load();
  TokenStream after_line(tokenizer, Ids{0, 1}, false);
  CHECK(after_line.add(1) == "");
  CHECK(after_line.add(0) == "\na");
  TokenStream after_half(tokenizer, Ids{0, 2}, false);  // the lone byte is shown as U+FFFD
  CHECK(after_half.add(3) == "");
  CHECK(after_half.finish() == "\xC3\xA9");
}

TEST_CASE("tokenizer: the template decides about the special tokens around a text") {
  test::SmallTokenizer small;
  small.added_tokens =
      cat("[", test::added_token(8, "<s>", "s"), ",", test::added_token(9, "</s>", "s"), "]");
  small.post_processor = R"({"type":"Sequence","processors":[
    {"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true},
    {"type":"TemplateProcessing",
     "single":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}},
               {"SpecialToken":{"id":"</s>","type_id":0}}],
     "pair":[],
     "special_tokens":{"<s>":{"id":"<s>","ids":[8],"tokens":["<s>"]},
                       "</s>":{"id":"</s>","ids":[9],"tokens":["</s>"]}}}]})";
  const Tokenizer tokenizer = small.load();
  CHECK(tokenizer.prefix() == Ids{8});
  CHECK(tokenizer.suffix() == Ids{9});
  CHECK(tokenizer.encode("ab", true) == Ids{8, 6, 9});
  CHECK(tokenizer.encode("ab", false) == Ids{6});
  CHECK(tokenizer.encode("", true) == Ids{8, 9});
  CHECK(tokenizer.decode(Ids{8, 6, 9}, true) == "ab");
  CHECK(tokenizer.decode(Ids{8, 6, 9}, false) == "<s>ab</s>");
  CHECK(tokenizer.is_special(8));
  CHECK_FALSE(tokenizer.is_special(6));
  CHECK(tokenizer.id_of("</s>") == 9);
  CHECK(tokenizer.id_of("abc") == 7);
  CHECK_FALSE(tokenizer.id_of("nothing").has_value());
  CHECK(tokenizer.vocab_size() == 10);
}

TEST_CASE("tokenizer: encodes in several threads at once as in one") {
  const Tokenizer tokenizer = test::SmallTokenizer().load();
  const Ids expected = tokenizer.encode("abcab cab", false);
  std::vector<Ids> made(4);
  {
    std::vector<std::jthread> threads;
    for (Ids& ids : made) {
      threads.emplace_back([&] {
        for (int i = 0; i < 100; ++i) ids = tokenizer.encode("abcab cab", false);
      });
    }
  }
  for (const Ids& ids : made) CHECK(ids == expected);
}

TEST_CASE("tokenizer: text that is not UTF-8 is refused") {
  const Tokenizer tokenizer = test::SmallTokenizer().load();
  CHECK(test::error_of([&] { tokenizer.encode("ab\xFF", false); }) ==
        "the text is not valid UTF-8 at byte 2");
}

// The tokenizers library also leaves out such ids.
TEST_CASE("tokenizer: an id that is no token has no text, and no name") {
  const Tokenizer tokenizer = test::SmallTokenizer().load();
  CHECK(tokenizer.has(7));
  CHECK_FALSE(tokenizer.has(8));
  CHECK_FALSE(tokenizer.has(-1));
  CHECK(tokenizer.decode(Ids{1, 8, -1, 3}, false) == tokenizer.decode(Ids{1, 3}, false));
  TokenStream stream(tokenizer, Ids{9}, false);
  const std::string text = stream.add(1) + stream.add(8) + stream.add(3) + stream.finish();
  CHECK(text == tokenizer.decode(Ids{1, 3}, false));
  CHECK(test::error_of([&] { tokenizer.token(8); }) ==
        "the token id 8 is not in the vocabulary (ids go from 0 to 7)");
}

TEST_CASE("tokenizer: without a decoder the tokens are joined by spaces") {
  test::SmallTokenizer small;
  small.decoder = "null";
  CHECK(small.load().decode(Ids{6, 3, 1}, false) == "ab c a");
}

TEST_CASE("added tokens: leftmost first, of those that begin together the longest") {
  test::SmallTokenizer small;
  small.added_tokens = cat("[", test::added_token(8, "ca"), ",", test::added_token(9, "cab"), ",",
                           test::added_token(10, "bb"), "]");
  const Tokenizer tokenizer = small.load();
  CHECK(tokenizer.encode("acab", false) == Ids{1, 9});
  CHECK(tokenizer.encode("cacabbb", false) == Ids{8, 9, 10});
}

// A comparison of random tokenizers with the library found this case.
TEST_CASE("added tokens: one that strips to its left is gone where the spaces are taken") {
  test::SmallTokenizer small;
  small.added_tokens =
      cat("[", test::added_token(4, " ", "l"), ",", test::added_token(6, "ab", "r"), "]");
  CHECK(small.load().encode("ab c", false) == Ids{6, 3});
  CHECK(small.load().encode("c ab", false) == Ids{3, 4, 6});
  small.added_tokens =
      cat("[", test::added_token(4, " "), ",", test::added_token(6, "ab", "r"), "]");
  CHECK(small.load().encode("ab c", false) == Ids{6, 4, 3});
}

TEST_CASE("added tokens: a normalised one is looked for in normalised text and shown so") {
  test::SmallTokenizer small;
  small.normalizer = R"({"type":"Lowercase"})";
  small.added_tokens =
      cat("[", test::added_token(8, "AC", "ns"), ",", test::added_token(9, "BC", "s"), "]");
  const Tokenizer tokenizer = small.load();
  CHECK(tokenizer.encode("acAC", false) == Ids{8, 8});
  CHECK(tokenizer.encode("bcBC", false) == Ids{2, 3, 9});
  CHECK(tokenizer.decode(Ids{8, 9}, false) == "acBC");
  // Like the library, checks the original content for being special, not the shown text.
  CHECK(tokenizer.decode(Ids{8, 9}, true) == "ac");
}

TEST_CASE("merges: #version lines are no merges, and of a pair listed twice the last counts") {
  test::SmallTokenizer small;
  small.vocab = R"({"<unk>":0,"a":1,"b":2,"c":3,"ab":4,"bc":5})";
  small.merges = R"(["#version: 0.2","a b","b c"])";
  CHECK(small.load().encode("abc", false) == Ids{4, 3});
  small.merges = R"(["a b","b c","a b"])";
  CHECK(small.load().encode("abc", false) == Ids{1, 5});
}

TEST_CASE("model: prefixes inside and suffixes at the end of words find their tokens") {
  test::SmallTokenizer small;
  small.options =
      R"("unk_token":"<unk>","continuing_subword_prefix":"##","end_of_word_suffix":"</w>")";
  small.vocab = R"({"<unk>":0,"a":1,"##b":2,"##b</w>":3,"a</w>":4,"ab</w>":5})";
  small.merges = R"([["a","##b</w>"]])";
  small.pre_tokenizer = R"({"type":"WhitespaceSplit"})";
  CHECK(small.load().encode("ab a abb", false) == Ids{5, 4, 1, 2, 3});
}

TEST_CASE("model: a character that is no token needs the unknown token") {
  test::SmallTokenizer small;
  small.options = R"("unk_token":"[UNK]")";
  const Tokenizer tokenizer = small.load();
  CHECK(tokenizer.encode("ab", false) == Ids{6});
  const std::string message = test::error_of([&] { tokenizer.encode("axb", false); });
  CHECK(message.ends_with(
      "/tokenizer.json': model.unk_token: '[UNK]' is not in the vocabulary, and 'x' needs it"));
  small.options = R"("unk_token":null)";  // the library drops it too
  CHECK(small.load().encode("axb", false) == Ids{6});
}

}  // namespace
}  // namespace fp8kv
