// Tokenizers without tokenizer.json: SentencePiece's file, or vocab.json with merges.txt.
#include <doctest/doctest.h>

#include "base/interrupt.h"
#include "json/json.h"
#include "support/expect_error.h"
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

std::string from_hex(const std::string& digits) {
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

TEST_CASE("tokenizer folders: agree with sentencepiece, transformers and tokenizers") {
  const Json file = Json::read(test::source_dir() / "tests/golden/tokenizer-folders.json");
  const Json cases = file.at("cases");
  REQUIRE(cases.size() > 10);
  for (size_t i = 0; i < cases.size(); ++i) {
    const Json one = cases[i];
    CAPTURE(one.at("name").as_string());
    const test::TempDir dir;
    const Json files = one.at("files");
    for (size_t k = 0; k < files.size(); ++k) {
      const std::string content = files.value(k).as_string();
      dir.write(files.key(k), files.key(k) == "tokenizer.model" ? from_hex(content) : content);
    }
    const std::optional<Tokenizer> tokenizer = Tokenizer::find_in(dir.path());
    REQUIRE(tokenizer.has_value());
    std::vector<std::string> texts;
    for (const Json& list : {file.at("texts"), one.at("texts")}) {
      for (size_t k = 0; k < list.size(); ++k) texts.push_back(list[k].as_string());
    }
    const Json expected = one.at("expected");
    REQUIRE(expected.size() == texts.size());
    for (size_t k = 0; k < texts.size(); ++k) {
      CAPTURE(texts[k]);
      const Json row = expected[k];  // [ids, ids_special, decoded or null, decoded_skip]
      const Ids special = ids_from(row[1]);
      CHECK(tokenizer->encode(texts[k], false) == ids_from(row[0]));
      CHECK(tokenizer->encode(texts[k], true) == special);
      if (!row[2].is_null()) CHECK(tokenizer->decode(special, false) == row[2].as_string());
      CHECK(tokenizer->decode(special, true) == row[3].as_string());
      // Decoding piece by piece gives the same text.
      TokenStream stream(*tokenizer, {}, true);
      std::string joined;
      for (const int32_t id : special) joined += stream.add(id);
      CHECK(joined + stream.finish() == row[3].as_string());
    }
  }
}

TEST_CASE("tokenizer folders: real files without a tokenizer.json give the published vectors") {
  for (const std::string name : {"gpt2", "llama2"}) {
    const auto folder = test::shared_data("tokenizers/" + name);
    if (!folder) return;
    CAPTURE(name);
    const test::TempDir dir;
    for (const char* file :
         {"tokenizer.model", "vocab.json", "merges.txt", "tokenizer_config.json"}) {
      if (!std::filesystem::exists(*folder / file)) continue;
      std::filesystem::create_symlink(std::filesystem::absolute(*folder / file), dir.path() / file);
    }
    const std::optional<Tokenizer> tokenizer = Tokenizer::find_in(dir.path());
    REQUIRE(tokenizer.has_value());
    const Json vectors = Json::read(*folder / "vectors-llamacpp.json");
    const bool special = vectors.at("add_special_tokens").as_bool();
    const Json cases = vectors.at("cases");
    REQUIRE(cases.size() > 40);
    for (size_t i = 0; i < cases.size(); ++i) {
      const std::string text = cases[i].at("text").as_string();
      CAPTURE(text);
      CHECK(tokenizer->encode(text, special) == ids_from(cases[i].at("ids")));
    }
  }
}

// A field of bytes in a protobuf message.
std::string bytes_field(char field, const std::string& bytes) {
  std::string made{static_cast<char>(field << 3 | 2)};
  for (size_t rest = bytes.size();; rest >>= 7) {
    made += static_cast<char>((rest & 0x7F) | (rest > 0x7F ? 0x80 : 0));
    if (rest <= 0x7F) break;
  }
  return made + bytes;
}
std::string number_field(int field, char value) {
  const int tag = field << 3;
  std::string made;
  if (tag > 0x7F) made += static_cast<char>((tag & 0x7F) | 0x80);
  made += static_cast<char>(tag > 0x7F ? tag >> 7 : tag);
  return made + value;
}
std::string piece(const std::string& text, int type = 1,
                  const std::string& score = std::string(4, '\0')) {
  return bytes_field(
      1, bytes_field(1, text) + "\x15" + score + number_field(3, static_cast<char>(type)));
}
std::string trainer(int model_type) {
  return bytes_field(2, number_field(3, static_cast<char>(model_type)));
}
const std::string kSpace = "\xE2\x96\x81";

// A BPE model with <unk>, <s>, a, b, the space and "ab".
std::string small_model() {
  return trainer(2) + piece("<unk>", 2) + piece("<s>", 3) + piece("a") + piece("b") +
         piece(kSpace) + piece("ab");
}

struct Folder {
  test::TempDir dir;
  Folder(const std::string& model, const std::string& config) {
    dir.write("tokenizer.model", model);
    if (!config.empty()) dir.write("tokenizer_config.json", config);
  }
  Tokenizer load() const { return std::move(*Tokenizer::find_in(dir.path())); }
};

std::string refusal(const std::string& model, const std::string& config = "") {
  const Folder folder(model, config);
  const std::string message = test::error_of([&] { folder.load(); });
  const std::string prefix = "'" + (folder.dir.path() / "").string();
  CHECK(message.starts_with(prefix));
  return message.starts_with(prefix) ? message.substr(prefix.size()) : message;
}

TEST_CASE("tokenizer.model: BOS is put where the config's class does, or where the config says") {
  const std::string model = small_model();
  CHECK(Folder(model, "").load().encode("ab", true) == Ids{1, 4, 5});
  CHECK(Folder(model, R"({"tokenizer_class":"LlamaTokenizer"})").load().prefix() == Ids{1});
  CHECK(Folder(model, R"({"add_bos_token":false})").load().prefix().empty());
  CHECK(Folder(model,
               R"({"add_bos_token":true,"bos_token":"a","add_eos_token":true,"eos_token":"b"})")
            .load()
            .encode("", true) == Ids{2, 3});
  CHECK(refusal(model, R"({"tokenizer_class":"XLNetTokenizer"})") ==
        "tokenizer_config.json': tokenizer_class: 'XLNetTokenizer' is not known to put a BOS token "
        "before a text or not");
}

TEST_CASE("tokenizer.model: tokens of the config are found in text, control pieces are not") {
  const std::string model = small_model();
  CHECK(Folder(model, "").load().encode("<s>", false) == Ids{4, 0});
  const Tokenizer named = Folder(model, R"({"bos_token":"<s>","added_tokens_decoder":{
      "5":{"content":"<|x|>","special":true},"9":{"content":"<|y|>"}}})")
                              .load();
  CHECK(named.encode("<s>a<|x|><|y|>b", false) == Ids{1, 4, 2, 5, 9, 4, 3});
  CHECK(named.decode(Ids{5, 9, 4, 3}, false) == "<|x|><|y|> b");
  CHECK(named.vocab_size() == 10);
  const Tokenizer once = Folder(model, R"({"legacy":false,"bos_token":"<s>"})").load();
  CHECK(once.encode("a<s>b", false) == Ids{4, 2, 1, 3});
  CHECK(Folder(model, R"({"add_prefix_space":false})").load().encode("ab", false) == Ids{5});
}

TEST_CASE("tokenizer.model: refuses what is none, and what is not implemented, by name") {
  CHECK(refusal("IQ== 0\nIg== 1\n") ==
        "tokenizer.model': is a vocabulary of tiktoken, expected one of SentencePiece");
  CHECK(refusal("\x0A\x05"
                "abc") ==
        "tokenizer.model': is no protobuf message, or not all of it: it ends inside field 1");
  CHECK(refusal("{}") == "tokenizer.model': is no protobuf message: field 15 is of the type 3");
  CHECK(refusal("") == "tokenizer.model': pieces: none of them is the unknown piece");
  CHECK(
      refusal(trainer(3)) ==
      "tokenizer.model': trainer_spec.model_type: 3 (WORD) is not supported, only 1 (UNIGRAM) and "
      "2 (BPE) are");
  CHECK(refusal(piece("")) == "tokenizer.model': pieces[0].piece: is empty");
  CHECK(refusal(piece("\xFF")) == "tokenizer.model': pieces[0].piece: is not valid UTF-8");
  CHECK(refusal(piece("a", 7)) == "tokenizer.model': pieces[0].type: is 7, expected 1 to 6");
  CHECK(refusal(piece("a", 1, std::string("\0\0\xC0\x7F", 4)))
            .starts_with("tokenizer.model': pieces[0].score: is "));
  CHECK(refusal(small_model() + piece("c", 2)) ==
        "tokenizer.model': pieces[6]: is a second unknown piece");
  CHECK(refusal(small_model() + piece("a")) ==
        "tokenizer.model': pieces[6]: is 'a', as another piece is");
  CHECK(refusal(small_model() + piece("<0x41>", 6)) ==
        "tokenizer.model': pieces[6]: is a byte, but byte_fallback is false");
  CHECK(refusal(small_model() + bytes_field(2, number_field(35, 1))) ==
        "tokenizer.model': pieces: 0 of them are bytes, expected 256 with byte_fallback");
  CHECK(
      refusal(small_model() + piece("aa", 5)) ==
      "tokenizer.model': pieces[6]: 'aa' is unused, but text can become it; that is not supported "
      "in a BPE model");
  CHECK(refusal(small_model() + piece(std::string(1025, 'a'))) ==
        "tokenizer.model': pieces[6]: has 1025 bytes, expected at most 1024");
  CHECK(refusal(small_model() + bytes_field(3, bytes_field(2, "abc"))) ==
        "tokenizer.model': normalizer_spec.precompiled_charsmap: is no precompiled charsmap: its "
        "table of 0 bytes is not within 3");
  CHECK(
      refusal(small_model() + bytes_field(5, bytes_field(2, "abc"))) ==
      "tokenizer.model': denormalizer_spec.precompiled_charsmap: is not supported, expected none");
  CHECK(refusal(small_model(), R"({"added_tokens_decoder":{"3":{"content":"a"}}})") ==
        "tokenizer_config.json': 'a' has the id 3, but 2 in the vocabulary");
  CHECK(refusal(small_model(), R"({"sp_model_kwargs":{"alpha":0.1}})") ==
        "tokenizer_config.json': sp_model_kwargs: is {\"alpha\": 0.1}, expected {}");
}

TEST_CASE("vocab.json with merges.txt: refuses what only another class would know, and bad lines") {
  const auto refused = [](const std::string& merges, const std::string& config) {
    const test::TempDir dir;
    dir.write("vocab.json", R"({"a":0,"b":1,"ab":2})");
    dir.write("merges.txt", merges);
    dir.write("tokenizer_config.json", config);
    const std::string message = test::error_of([&] { Tokenizer::find_in(dir.path()); });
    return message.substr(std::min(message.size(), (dir.path() / "").string().size() + 1));
  };
  CHECK(refused("a b\n", R"({"tokenizer_class":"RobertaTokenizer"})") ==
        "tokenizer_config.json': tokenizer_class: 'RobertaTokenizer' is not supported with "
        "vocab.json and merges.txt, only GPT2Tokenizer, CodeGenTokenizer, GPTNeoXTokenizer, "
        "Qwen2Tokenizer and CohereTokenizer are");
  CHECK(refused("#version: 0.2\na b\n\na c\n", "{}") ==
        "merges.txt': line 4: the token 'c' is not in the vocabulary");
  CHECK(refused("a b c\r\n", "{}") ==
        "merges.txt': line 1: is 'a b c', expected two tokens with a space between");
  CHECK(refused("a b\n", R"({"added_tokens_decoder":{"1":{"content":"x"}}})") ==
        "tokenizer_config.json': 'x' has the id 1, which is that of 'b' in the vocabulary");
  CHECK(refused("a b\n", R"({"added_tokens_decoder":{"x":{"content":"x"}}})") ==
        "tokenizer_config.json': added_tokens_decoder: the key 'x' is no token id");
  CHECK(refused("a b\n", R"({"add_bos_token":true,"bos_token":{"content":""}})") ==
        "tokenizer_config.json': bos_token: is empty, expected a token");
}

TEST_CASE("tokenizer folders: nothing is found in a folder that has none") {
  const test::TempDir dir;
  dir.write("vocab.json", "{}");
  CHECK_FALSE(Tokenizer::find_in(dir.path()).has_value());
}

// 'a' and 'aa' have the same score per character, so no place is decided before the end of the
// text. In normal text, decided parts are released.
TEST_CASE("Unigram: long words take linear time and look for interrupts") {
  const std::string low("\0\0\x80\xBF", 4);  // -1
  const std::string twice("\0\0\0\xC0", 4);  // -2
  const std::string model = piece("<unk>", 2) + piece("a", 1, low) + piece("aa", 1, twice) +
                            piece("b", 1, low) + piece(kSpace, 1, low) +
                            bytes_field(3, number_field(4, 0));
  const Tokenizer tokenizer = Folder(model, "").load();
  for (const std::string unit : {"a", "a b"}) {
    std::string text;
    while (text.size() < size_t{1} << 20) text += unit;
    const uint64_t before = interrupt_checks();
    const Ids ids = tokenizer.encode(text, false);
    CHECK(interrupt_checks() - before >= 2 * (text.size() >> 17));
    CHECK(ids.size() >= text.size() / 2);
    const Ids shorter = tokenizer.encode(text.substr(0, 1000), false);
    const bool is_same = tokenizer.decode(ids, false) == text;  // avoids printing a long text
    CHECK(is_same);
    CHECK(shorter.size() >= 500);
  }
}

}  // namespace
}  // namespace fp8kv
