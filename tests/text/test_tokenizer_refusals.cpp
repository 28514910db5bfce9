// Every refusal of a tokenizer.json, with the whole message after the file's name.
#include <doctest/doctest.h>

#include "support/expect_error.h"
#include "support/models/small_tokenizer.h"
#include "text/tokenizer.h"

namespace fp8kv {
namespace {

using test::added_token;
using test::SmallTokenizer;

std::string refusal_of_text(const std::string& text) {
  const test::TempDir dir;
  const auto path = dir.write("tokenizer.json", text);
  const std::string message = test::error_of([&] { Tokenizer::load(path); });
  const std::string name = quote(path.string());
  CHECK(message.starts_with(name));
  return message.starts_with(name) ? message.substr(name.size()) : message;
}

template <typename Edit>
std::string refusal(Edit&& edit) {
  SmallTokenizer small;
  edit(small);
  return refusal_of_text(small.text());
}

std::string normalizer(const std::string& json) {
  return refusal([&](SmallTokenizer& small) { small.normalizer = json; });
}
std::string pre_tokenizer(const std::string& json) {
  return refusal([&](SmallTokenizer& small) { small.pre_tokenizer = json; });
}
std::string decoder(const std::string& json) {
  return refusal([&](SmallTokenizer& small) { small.decoder = json; });
}
std::string post_processor(const std::string& json) {
  return refusal([&](SmallTokenizer& small) { small.post_processor = json; });
}
std::string added(const std::string& json) {
  return refusal([&](SmallTokenizer& small) { small.added_tokens = json; });
}
std::string options(const std::string& json) {
  return refusal([&](SmallTokenizer& small) { small.options = json; });
}
std::string vocab(const std::string& json) {
  return refusal([&](SmallTokenizer& small) { small.vocab = json; });
}
std::string merges(const std::string& json) {
  return refusal([&](SmallTokenizer& small) { small.merges = json; });
}
std::string split(const std::string& regex) {
  return pre_tokenizer(cat(R"({"type":"Split","pattern":{"Regex":")", regex,
                           R"("},"behavior":"Isolated","invert":false})"));
}

TEST_CASE("tokenizer: refuses files that are no tokenizer.json") {
  CHECK(refusal_of_text("[]") == ": is an array ([]), expected an object");
  CHECK(refusal_of_text("{}") == ": the key 'model' is missing");
  CHECK(refusal_of_text(R"({"version":"2.0","model":{}})") ==
        ": version: is '2.0', expected '1.0'");
  CHECK(refusal_of_text(R"({"chat":1,"model":{}})") ==
        ": the key 'chat' is not supported, only version, truncation, padding, added_tokens, "
        "normalizer, pre_tokenizer, post_processor, decoder and model are");
  CHECK(refusal_of_text(R"({"model":{"type":"WordPiece","vocab":{}}})") ==
        ": model: the type 'WordPiece' is not supported, only BPE and Unigram are");
  CHECK(refusal_of_text(R"({"model":{"vocab":{}}})") == ": model: the key 'type' is missing");
  CHECK(refusal_of_text(std::string(500, '[')) == ": nested deeper than 128 levels");
}

TEST_CASE("tokenizer: refuses a broken Unigram model") {
  const auto unigram = [](const std::string& members) {
    return refusal_of_text(cat(R"({"model":{"type":"Unigram",)", members, "}}"));
  };
  CHECK(unigram(R"("vocab":{})") == ": model.vocab: is {}, expected an array");
  CHECK(unigram(R"("vocab":[["a",-1],["b"]])") ==
        ": model.vocab[1]: is [\"b\"], expected a token and its score");
  CHECK(unigram(R"("vocab":[["a",-1],["a",-2]])") ==
        ": model.vocab[1]: the token 'a' is there twice");
  CHECK(unigram(R"("vocab":[["",-1]])") == ": model.vocab[0]: the token is empty");
  CHECK(unigram(R"("vocab":[["a",-1]],"unk_id":1)") ==
        ": model.unk_id: is 1, expected an id below 1");
  CHECK(
      unigram(R"("vocab":[["a",-1]],"alpha":0.1)") ==
      ": model: the key 'alpha' is not supported, only type, unk_id, vocab and byte_fallback are");
}

TEST_CASE("tokenizer: refuses a broken vocabulary") {
  CHECK(vocab("[]") == ": model.vocab: is an array ([]), expected an object");
  CHECK(vocab(R"({"a":"b"})") == ": model.vocab.a: is a string (\"b\"), expected an integer");
  CHECK(vocab(R"({"a":-1})") ==
        ": model.vocab.a: the id -1 is out of range, expected 0 to 65551 for 1 token");
  CHECK(vocab(R"({"a":0,"b":4294967296})") ==
        ": model.vocab.b: the id 4294967296 is out of range, expected 0 to 65567 for 2 tokens");
  CHECK(vocab(R"({"a":3,"b":3})") == ": model.vocab.b: the id 3 is that of 'a' already");
  CHECK(vocab(R"({"a":3,"a":4})") == ": the key 'a' is there twice");
}

TEST_CASE("tokenizer: refuses merges that the vocabulary cannot carry out") {
  CHECK(merges("{}") == ": model.merges: is {}, expected an array");
  CHECK(merges(R"([["a","x"]])") == ": model.merges[0]: the token 'x' is not in the vocabulary");
  CHECK(merges(R"([["a","b"],["c","a"]])") ==
        ": model.merges[1]: the token 'ca' is not in the vocabulary");
  CHECK(merges(R"([["a"]])") == ": model.merges[0]: has 1 element, expected 2");
  CHECK(merges(R"(["ab"])") ==
        ": model.merges[0]: is 'ab', expected two tokens with a space between");
  CHECK(merges(R"(["a b c"])") ==
        ": model.merges[0]: is 'a b c', expected two tokens with a space between");
  CHECK(merges("[7]") == ": model.merges[0]: is a number (7), expected a string");
  CHECK(refusal([](SmallTokenizer& small) {
          small.vocab = R"({"":0,"a":1})";
          small.merges = R"([["a",""]])";
        }) == ": model.merges[0]: the tokens 'a' and '' join to nothing longer than they are");
  CHECK(refusal([](SmallTokenizer& small) {
          small.options = R"("continuing_subword_prefix":"##")";
          small.vocab = R"({"a":0,"##":1})";
          small.merges = R"([["a","##"]])";
        }) == ": model.merges[0]: the tokens 'a' and '##' join to nothing longer than they are");
}

TEST_CASE("tokenizer: refuses options of the model that change tokens at random or are unknown") {
  CHECK(options(R"("dropout":0.1)") ==
        ": model.dropout: is 0.1, which makes tokens random; expected null or 0");
  CHECK(options(R"("fuse_unk":1)") == ": model.fuse_unk: is a number (1), expected true or false");
  CHECK(options(R"("max_length":5)") ==
        ": model: the key 'max_length' is not supported, only type, dropout, unk_token, "
        "continuing_subword_prefix, end_of_word_suffix, fuse_unk, byte_fallback, ignore_merges, "
        "vocab and merges are");
}

TEST_CASE("tokenizer: refuses normalizers it does not implement exactly") {
  CHECK(
      normalizer(R"({"type":"Precompiled","precompiled_charsmap":""})") ==
      ": normalizer: the type 'Precompiled' is not supported, only ByteLevel, Lowercase, NFC, NFD, "
      "NFKC, NFKD, Nmt, Prepend, Replace, Sequence, Strip and StripAccents are");
  CHECK(normalizer(R"({"type":"NFC","form":"C"})") ==
        ": normalizer: the key 'form' is not supported, only type is");
  CHECK(normalizer(R"({"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Bert"}]})") ==
        ": normalizer.normalizers[1]: the type 'Bert' is not supported, only ByteLevel, Lowercase, "
        "NFC, NFD, NFKC, NFKD, Nmt, Prepend, Replace, Sequence, Strip and StripAccents are");
  CHECK(normalizer(R"({"type":"Sequence","normalizers":{}})") ==
        ": normalizer.normalizers: is {}, expected an array");
  CHECK(normalizer(R"({"type":"Prepend"})") == ": normalizer: the key 'prepend' is missing");
  CHECK(normalizer(R"({"type":"Replace","pattern":{"String":""},"content":"x"})") ==
        ": normalizer.pattern.String: is empty, expected something to look for");
  CHECK(normalizer(R"({"type":"Replace","pattern":{"Regex":"x*"},"content":"x"})") ==
        ": normalizer.pattern: a pattern that can match nothing is not supported in a normalizer");
  CHECK(normalizer(R"({"type":"Replace","pattern":{},"content":"x"})") ==
        ": normalizer.pattern: has 0 members, expected one of String and Regex");
  CHECK(normalizer("7") == ": normalizer: is a number (7), expected an object");
}

TEST_CASE("tokenizer: refuses pre-tokenizers it does not implement exactly") {
  CHECK(pre_tokenizer(R"({"type":"UnicodeScripts"})") ==
        ": pre_tokenizer: the type 'UnicodeScripts' is not supported, only BertPreTokenizer, "
        "ByteLevel, CharDelimiterSplit, Digits, Metaspace, Punctuation, Sequence, Split, "
        "Whitespace and WhitespaceSplit are");
  CHECK(pre_tokenizer(R"({"type":"Digits","individual_digits":true,"runs":3})") ==
        ": pre_tokenizer: the key 'runs' is not supported, only type and individual_digits are");
  CHECK(pre_tokenizer(
            R"({"type":"Split","pattern":{"String":"a"},"behavior":"Kept","invert":false})") ==
        ": pre_tokenizer.behavior: is 'Kept', expected Removed, Isolated, MergedWithPrevious, "
        "MergedWithNext or Contiguous");
  CHECK(pre_tokenizer(R"({"type":"Metaspace","replacement":"ab"})") ==
        ": pre_tokenizer.replacement: is 'ab', expected one character");
  CHECK(pre_tokenizer(R"({"type":"Metaspace","replacement":"_","prepend_scheme":"last"})") ==
        ": pre_tokenizer.prepend_scheme: is 'last', expected always, first or never");
  CHECK(pre_tokenizer(R"({"type":"Metaspace","replacement":"_","add_prefix_space":false})") ==
        ": pre_tokenizer: add_prefix_space is false, but prepend_scheme is not never");
  CHECK(refusal([](SmallTokenizer& small) {
          small.normalizer = R"({"type":"Prepend","prepend":"_"})";
          small.pre_tokenizer =
              R"({"type":"Metaspace","replacement":"_","prepend_scheme":"first"})";
        }) == ": pre_tokenizer: prepend_scheme first is not supported after this normalizer");
  CHECK(refusal([](SmallTokenizer& small) {
          small.normalizer = R"({"type":"NFKC"})";
          small.pre_tokenizer =
              R"({"type":"Metaspace","replacement":"_","prepend_scheme":"first"})";
          small.added_tokens = cat("[", added_token(8, "f", "n"), "]");
        }) ==
        ": prepend_scheme first is not supported with a normalizer and added tokens that are "
        "normalized");
  CHECK(pre_tokenizer(R"({"type":"Sequence","pretokenizers":[
          {"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true},
          {"type":"Metaspace","replacement":"_","prepend_scheme":"first"}]})") ==
        ": pre_tokenizer.pretokenizers[1]: prepend_scheme first is not supported after a "
        "pre-tokenizer that changes the text");
}

TEST_CASE("tokenizer: refuses patterns that PCRE2 would read differently") {
  const std::string at = ": pre_tokenizer.pattern.Regex: the pattern ";
  CHECK(split("a(b") == at + "'a(b' uses '(' at byte 3: it is never closed");
  CHECK(split("a)") == at + "'a)' uses ')' at byte 1: no group is open");
  CHECK(split("*a") == at + "'*a' uses '*' at byte 0: there is nothing to repeat");
  CHECK(split("(?=a)+") == at + "'(?=a)+' uses '+' at byte 5: there is nothing to repeat");
  CHECK(split("a{2}?") == at + "'a{2}?' uses '{2}?' at byte 4, which is not supported");
  CHECK(split("a{3,2}") == at + "'a{3,2}' uses '{3,2}' at byte 1, which is not supported");
  CHECK(split("a**") == at + "'a**' uses '*' at byte 2, which is not supported");
  CHECK(split("[a[bc]]") ==
        at + "'[a[bc]]' uses '[ inside a class' at byte 2, which is not supported");
  CHECK(split("[a&&b]") ==
        at + "'[a&&b]' uses '&& inside a class' at byte 2, which is not supported");
  CHECK(split("[]") == at + "'[]' uses '[]' at byte 1: a class cannot be empty");
  CHECK(split("[ab") == at + "'[ab' uses '[' at byte 3: it is never closed");
  CHECK(split("[\\\\W]") ==
        at + "'[\\\\W]' uses '\\\\W inside a class' at byte 1, which is not supported");
  CHECK(split("[\\\\s-z]") ==
        at + "'[\\\\s-z]' uses '- after a set inside a class' at byte 3, which is not supported");
  CHECK(split("(a)\\\\1") == at + "'(a)\\\\1' uses '\\\\1' at byte 3, which is not supported");
  CHECK(split("(?<n>a)") == at + "'(?<n>a)' uses '(?<' at byte 0, which is not supported");
  CHECK(split("a(?i)b") == at + "'a(?i)b' uses '(?i' at byte 1, which is not supported");
  CHECK(split("(*UTF)a") == at + "'(*UTF)a' uses '(*U' at byte 0, which is not supported");
  CHECK(split("\\\\xE9") == at + "'\\\\xE9' uses '\\\\xE9' at byte 4, which is not supported");
  CHECK(split("\\\\pL") == at + "'\\\\pL' uses '\\\\p' at byte 0, which is not supported");
  CHECK(split("\\\\p{Klingon}") ==
        at + "'\\\\p{Klingon}' uses '\\\\p{Klingon}' at byte 0: it is not the "
             "name of a general category or a script");
  const std::string refused = split("(?<=a+)b");  // the wording differs between PCRE2's versions
  CHECK(refused.starts_with(at + "'(?<=a+)b' cannot be compiled: "));
  CHECK(refused.ends_with(" (at byte 0)"));
}

TEST_CASE("tokenizer: refuses added tokens that programs would number differently") {
  CHECK(added("{}") == ": added_tokens: is {}, expected an array");
  CHECK(added("[{}]") == ": added_tokens[0]: the key 'content' is missing");
  CHECK(added(cat("[", added_token(8, ""), "]")) ==
        ": added_tokens[0].content: is empty, expected a token");
  CHECK(added(cat("[", added_token(5, "ab"), "]")) ==
        ": added_tokens[0].id: is 5 for 'ab', expected 6 as in model.vocab");
  CHECK(added(cat("[", added_token(8, "x"), ",", added_token(12, "y"), "]")) ==
        ": added_tokens[1].id: is 12 for 'y', expected 9, the next free one");
  CHECK(added(cat("[", added_token(2000000000, "x"), "]")) ==
        ": added_tokens[0].id: is 2000000000 for 'x', expected 8, the next free one");
  CHECK(refusal([](SmallTokenizer& small) {
          small.normalizer = R"({"type":"Lowercase"})";
          small.added_tokens =
              cat("[", added_token(8, "X", "n"), ",", added_token(9, "x", "n"), "]");
        }) == ": added_tokens[1].content: 'x' looks like another added token");
  CHECK(refusal([](SmallTokenizer& small) {
          small.normalizer = R"({"type":"Strip","strip_left":true,"strip_right":true})";
          small.added_tokens = cat("[", added_token(4, " ", "n"), "]");
        }) == ": added_tokens[0].content: nothing is left of ' ' after normalisation");
}

TEST_CASE("tokenizer: refuses templates that do not say where the text goes") {
  CHECK(post_processor(R"({"type":"PairProcessing"})") ==
        ": post_processor: the type 'PairProcessing' is not supported, only BertProcessing, "
        "ByteLevel, RobertaProcessing, Sequence and TemplateProcessing are");
  CHECK(post_processor(R"({"type":"RobertaProcessing","sep":["a",1],"cls":["b",9]})") ==
        ": post_processor.cls[1]: is 9, expected an id below 8");
  CHECK(post_processor(R"({"type":"BertProcessing","sep":"a","cls":["b",2]})") ==
        ": post_processor.sep: is \"a\", expected a token and its id");
  const auto single = [](const std::string& pieces) {
    return post_processor(cat(R"({"type":"TemplateProcessing","single":[)", pieces,
                              R"(],"pair":[],"special_tokens":{"<s>":{"id":"<s>","ids":[8]}}})"));
  };
  CHECK(single("") == ": post_processor.single: has the text 0 times, expected once");
  CHECK(single(R"({"Sequence":{"id":"A","type_id":0}},{"Sequence":{"id":"A","type_id":0}})") ==
        ": post_processor.single: has the text 2 times, expected once");
  CHECK(single(R"({"Sequence":{"id":"B","type_id":0}})") ==
        ": post_processor.single[0].Sequence.id: is 'B', but a single text is 'A'");
  CHECK(single(R"({"SpecialToken":{"id":"<x>","type_id":0}})") ==
        ": post_processor.single[0].SpecialToken.id: '<x>' is not among special_tokens");
  CHECK(single(R"({"SpecialToken":{"id":"<s>","type_id":0}})") ==
        ": post_processor.special_tokens.'<s>'.ids[0]: is 8, expected an id below 8");
}

TEST_CASE("tokenizer: refuses decoders it does not implement exactly") {
  CHECK(decoder(R"({"type":"WordPiece","prefix":"##","cleanup":true})") ==
        ": decoder: the type 'WordPiece' is not supported, only BPEDecoder, ByteFallback, "
        "ByteLevel, Fuse, Metaspace, Replace, Sequence and Strip are");
  CHECK(decoder(R"({"type":"Sequence","decoders":[{"type":"CTC"}]})") ==
        ": decoder.decoders[0]: the type 'CTC' is not supported, only BPEDecoder, ByteFallback, "
        "ByteLevel, Fuse, Metaspace, Replace, Sequence and Strip are");
  CHECK(decoder(R"({"type":"Strip","content":"ab","start":0,"stop":0})") ==
        ": decoder.content: is 'ab', expected one character");
  CHECK(decoder(R"({"type":"Strip","content":"a","start":-1,"stop":0})") ==
        ": decoder.start: is -1, expected 0 or more");
  CHECK(decoder(R"({"type":"BPEDecoder","suffix":""})") ==
        ": decoder.suffix: is empty, expected a suffix");
  CHECK(decoder(R"({"type":"Metaspace","replacement":"_","prepend_scheme":"x"})") ==
        ": decoder.prepend_scheme: is 'x', expected always, first or never");
  CHECK(decoder(R"({"type":"Metaspace","replacement":"_","add_prefix_space":false})") ==
        ": decoder: add_prefix_space is false, but prepend_scheme is not never");
}

}  // namespace
}  // namespace fp8kv
