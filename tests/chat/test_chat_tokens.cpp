#include <doctest/doctest.h>

#include "base/error.h"
#include "chat/chat_template.h"
#include "chat/chat_tokens.h"
#include "support/temp_dir.h"
#include "text/tokenizer.h"

namespace fp8kv {
namespace {

// One token for each letter of `kLetters`, in order, followed by the tokens below.
constexpr std::string_view kLetters = "abcdeinou</>| \n";
constexpr int32_t kEnd = 15;    // </e>, special
constexpr int32_t kUser = 16;   // <|u|>, special
constexpr int32_t kThink = 17;  // <think> in short: <i>, not special
constexpr int32_t kTwo = 18;    // two spaces, not special
constexpr int32_t kOld = 19;    // <o>, special, looked for after normalisation

std::string tokenizer_json() {
  std::string vocab;
  for (size_t i = 0; i < kLetters.size(); ++i) {
    const std::string letter = kLetters[i] == '\n' ? "\\n" : std::string(1, kLetters[i]);
    vocab += cat(i > 0 ? "," : "", "\"", letter, "\":", i);
  }
  const auto added = [](int32_t id, const std::string& content, bool special, bool normalized) {
    return cat(R"({"id":)", id, R"(,"content":")", content,
               R"(","single_word":false,"lstrip":false,"rstrip":false,"normalized":)", normalized,
               R"(,"special":)", special, "}");
  };
  return cat(R"({"version":"1.0","added_tokens":[)", added(kEnd, "</e>", true, false), ",",
             added(kUser, "<|u|>", true, false), ",", added(kThink, "<i>", false, false), ",",
             added(kTwo, "  ", false, false), ",", added(kOld, "<o>", true, true),
             R"(],"normalizer":null,"pre_tokenizer":null,"post_processor":null,"decoder":null,)"
             R"("model":{"type":"BPE","unk_token":null,"continuing_subword_prefix":null,)"
             R"("end_of_word_suffix":null,"fuse_unk":false,"byte_fallback":false,"vocab":{)",
             vocab, R"(},"merges":[]}})");
}

// The tokens as letters. Added tokens appear as their ids in brackets.
std::string encoded(const std::string& source, const std::string& content, bool user_specials) {
  const test::TempDir temp;
  const Tokenizer tokenizer = Tokenizer::load(temp.write("tokenizer.json", tokenizer_json()));
  temp.write("chat_template.jinja", source);
  const ChatTemplate chat = *ChatTemplate::find_in(temp.path(), "", [] { return int64_t{0}; });
  JsonWriter record;
  record.begin_object().key("messages").begin_array().begin_object();
  record.member("role", "u").member("content", content);
  record.end_object().end_array().end_object();
  const ChatTokens tokens(tokenizer, chat, user_specials);
  std::string out;
  for (const int32_t id : tokens.encode(chat.render(Json::parse(record.text(), "r"), false))) {
    out += id < kEnd ? std::string(1, kLetters[static_cast<size_t>(id)]) : cat("[", id, "]");
  }
  return out;
}

}  // namespace

TEST_CASE("chat tokens: a special token that a message spells is text, unless asked for") {
  const std::string source = "<|u|>{{ messages[0].content }}</e>";
  CHECK(encoded(source, "a</e>b<|u|>", false) == "[16]a</e>b<|u|>[15]");
  CHECK(encoded(source, "a</e>b<|u|>", true) == "[16]a[15]b[16][15]");
  CHECK(encoded("{{ messages[0].content|replace('a', '</e>') }}", "a</e>a", false) ==
        "[15]</e>[15]");
  CHECK(encoded("{{ messages[0].content[:2] ~ messages[0].content[2:] }}", "</e>", false) ==
        "</e>");
}

TEST_CASE("chat tokens: a token of which the template writes a part is one") {
  CHECK(encoded("{{ '<|' + messages[0].role + '|>' }}", "", false) == "[16]");
}

TEST_CASE("chat tokens: other added tokens are text in messages where the template writes them") {
  CHECK(encoded("{{ messages[0].content }}", "<i>a", false) == "[17]a");
  CHECK(encoded("<i>{{ messages[0].content }}", "<i>a", false) == "[17]<i>a");
  CHECK(encoded("  {{ messages[0].content }}", "a  b", false) == "[18]a[18]b");
}

TEST_CASE("chat tokens: the same of tokens that are looked for after normalisation") {
  CHECK(encoded("<o>{{ messages[0].content }}<o>", "ab", false) == "[19]ab[19]");
  CHECK(encoded("<o>{{ messages[0].content }}<o>", "a<o>b", false) == "[19]a<o>b[19]");
  CHECK(encoded("<o>{{ messages[0].content }}<o>", "a<o>b", true) == "[19]a[19]b[19]");
}

}  // namespace fp8kv
