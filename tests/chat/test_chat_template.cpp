#include <doctest/doctest.h>

#include "base/error.h"
#include "chat/chat_template.h"
#include "chat/template_files.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;

// The templates found in a folder, as "NAME=SOURCE".
std::string found_in(const fs::path& folder) {
  std::string out;
  for (const NamedTemplate& each : chat_templates_in(folder)) {
    out += cat(out.empty() ? "" : " ", each.name, "=", each.source);
  }
  return out;
}

ChatTemplate template_in(const fs::path& folder, const std::string& choice = "") {
  auto found = ChatTemplate::find_in(folder, choice, [] { return int64_t{0}; });
  REQUIRE(found);
  return *std::move(found);
}

// The text that the template `source` renders for `record`.
std::string rendered(const std::string& source, const std::string& record, bool prompt = false) {
  const test::TempDir temp;
  temp.write("chat_template.jinja", source);
  return template_in(temp.path()).render(Json::parse(record, "record"), prompt).bytes();
}

}  // namespace

TEST_CASE(
    "chat template: files of their own go before tokenizer_config.json, that before a "
    "processor's") {
  const test::TempDir temp;
  CHECK(found_in(temp.path()) == "");
  temp.write("chat_template.json", R"({"chat_template": "P"})");
  CHECK(found_in(temp.path()) == "default=P");
  temp.write("tokenizer_config.json", R"({"chat_template": "T"})");
  CHECK(found_in(temp.path()) == "default=T");
  temp.write("tokenizer_config.json", R"({"chat_template": [{"name": "rag", "template": "R"},)"
                                      R"({"name": "default", "template": "D"}]})");
  CHECK(found_in(temp.path()) == "default=D rag=R");
  temp.write("chat_template.jinja", "J");
  CHECK(found_in(temp.path()) == "default=J");
  temp.write("additional_chat_templates/tool_use.jinja", "U");
  temp.write("additional_chat_templates/default.jinja", "X");
  temp.write("additional_chat_templates/notes.txt", "N");
  CHECK(found_in(temp.path()) == "default=J tool_use=U");
}

TEST_CASE("chat template: the default is taken, or what is named, or a file") {
  const test::TempDir temp;
  const std::string folder = quote(temp.path().string());
  CHECK_FALSE(ChatTemplate::find_in(temp.path(), "", [] { return int64_t{0}; }));
  temp.write("additional_chat_templates/rag.jinja", "R{{ messages|length }}");
  const Json record = Json::parse(R"({"messages": [{"role": "user", "content": "a"}]})", "record");
  CHECK(test::error_of([&] { template_in(temp.path()); }) ==
        cat(folder, ": has the chat templates 'rag', and none of them is called 'default'"));
  CHECK(template_in(temp.path(), "rag").render(record, false).bytes() == "R1");
  const fs::path file = temp.write("own.jinja", "own");
  CHECK(template_in(temp.path(), file.string()).label() == quote(file.string()));
  CHECK(test::error_of([&] { template_in(temp.path(), "rug"); }, ErrorKind::usage) ==
        cat("'rug' is no file, and no chat template of ", folder, ", which has 'rag'"));
  temp.write("chat_template.jinja", "{% if %}");
  CHECK(test::error_of([&] { template_in(temp.path()); }) ==
        cat(quote((temp.path() / "chat_template.jinja").string()),
            ": line 1: expected an expression, got end of statement block"));
}

TEST_CASE(
    "chat template: it is given the tokens that have a name, in the way of old and new models") {
  const test::TempDir temp;
  const Json record = Json::parse(R"({"messages": [{"role": "user", "content": "a"}]})", "record");
  const auto tokens = [&] { return template_in(temp.path()).render(record, false).bytes(); };
  temp.write(
      "chat_template.jinja",
      "{{ bos_token }}|{{ eos_token }}|{{ pad_token is defined }}|{{ tools }}|{{ documents }}");
  CHECK(tokens() == "||False|None|None");
  temp.write("tokenizer_config.json",
             R"({"bos_token": {"content": "<s>"}, "eos_token": "</s>", "pad_token": null})");
  CHECK(tokens() == "<s>|</s>|False|None|None");
  temp.write("special_tokens_map.json", R"({"eos_token": "<eos>"})");
  CHECK(tokens() == "<s>|<eos>|False|None|None");
  temp.write("tokenizer_config.json", R"({"bos_token": "<s>", "added_tokens_decoder": {}})");
  CHECK(tokens() == "<s>||False|None|None");
}

TEST_CASE("chat template: a file of settings that holds no object is refused") {
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const test::TempDir temp;
    temp.write("chat_template.jinja", "{{ bos_token }}");
    const std::string file = temp.write(name, "[1]").string();
    CHECK(test::error_of([&] { template_in(temp.path()); }) ==
          cat(quote(file), ": is [1], expected an object"));
  }
  for (const char* name : {"tokenizer_config.json", "chat_template.json"}) {
    const test::TempDir temp;
    const std::string file = temp.write(name, "[1]").string();
    CHECK(test::error_of([&] { chat_templates_in(temp.path()); }) ==
          cat(quote(file), ": is [1], expected an object"));
  }
}

TEST_CASE("chat template: a class of tokenizers has tokens that its files do not name") {
  // Texts of transformers 5.23 for folders with tokenizer.json and this tokenizer_config.json.
  const struct {
    const char* config;
    bool has_json;
    const char* text;
  } kCases[] = {
      {R"({"tokenizer_class": "GPT2Tokenizer"})", true,
       "<|endoftext|>|<|endoftext|>|<|endoftext|>|"},
      {R"({"tokenizer_class": "GPT2TokenizerFast", "bos_token": null})", true,
       "|<|endoftext|>|<|endoftext|>|"},
      {R"({"tokenizer_class": "GPT2Tokenizer", "bos_token": "<s>"})", true,
       "<s>|<|endoftext|>|<|endoftext|>|"},
      {R"({"tokenizer_class": "GPTNeoXTokenizerFast"})", true,
       "<|endoftext|>|<|endoftext|>|<|endoftext|>|<|padding|>"},
      {R"({"tokenizer_class": "GemmaTokenizer"})", true, "<bos>|<eos>|<unk>|<pad>"},
      {R"({"tokenizer_class": "Qwen2Tokenizer"})", true,
       "|<|endoftext|>|<|endoftext|>|<|endoftext|>"},
      {R"({"tokenizer_class": "CohereTokenizerFast"})", true,
       "<BOS_TOKEN>|<|END_OF_TURN_TOKEN|>|<UNK>|<PAD>"},
      {R"({"tokenizer_class": "CodeLlamaTokenizer"})", true, "<s>|</s>|<unk>|"},
      {R"({"tokenizer_class": "LlamaTokenizer"})", true, "|||"},
      {R"({"tokenizer_class": "LlamaTokenizer"})", false, "<s>|</s>|<unk>|"},
      {R"({"tokenizer_class": "PreTrainedTokenizerFast"})", true, "|||"},
      {"{}", true, "|||"},
  };
  for (const auto& each : kCases) {
    CAPTURE(each.config);
    const test::TempDir temp;
    temp.write("chat_template.jinja",
               "{{ bos_token }}|{{ eos_token }}|{{ unk_token }}|{{ pad_token }}");
    temp.write("tokenizer_config.json", each.config);
    if (each.has_json) temp.write("tokenizer.json", "{}");
    CHECK(template_in(temp.path()).render_turn("x").bytes() == each.text);
  }
}

TEST_CASE("chat template: messages arrive as transformers passes them on") {
  CHECK(
      rendered(
          "{{ messages|tojson }}",
          R"({"messages": [{"role": "assistant", "content": null, "n": 1.0, "tool_calls": []}]})") ==
      R"([{"role": "assistant", "n": 1.0, "tool_calls": []}])");
  CHECK(rendered("{{ messages[0]|tojson }}",
                 R"({"messages": [{"role": "a", "reasoning": "r", "thinking": "t"}]})") ==
        R"({"thinking": "t", "role": "a", "reasoning": "r", "reasoning_content": "t"})");
  CHECK(rendered(
            "{{ messages|tojson }}",
            R"({"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"},)"
            R"({"from": "system", "value": "c"}, {"from": "observation", "value": "d"}]})") ==
        R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, )"
        R"({"role": "system", "content": "c"}, {"role": "tool", "content": "d"}])");
  CHECK(
      rendered("{{ add_generation_prompt }}{{ tools|length }}{{ x }}",
               R"({"messages": [{"role": "a"}], "tools": [{}], "chat_template_kwargs": {"x": 5}})",
               true) == "True15");
}

TEST_CASE("chat template: what is no conversation, or is refused, is named by its record") {
  const auto error = [](const std::string& source, const std::string& record) {
    return test::error_of([&] { rendered(source, record); });
  };
  CHECK(error("", R"({"messages": []})") == "record: messages: is empty, expected messages");
  CHECK(error("", R"({"messages": "hi"})") == "record: messages: is \"hi\", expected an array");
  CHECK(error("", R"({"messages": ["hi"]})") ==
        "record: messages[0]: is \"hi\", expected an object");
  CHECK(error("", R"({"messages": [{"n": 123456789012345678901}]})") ==
        "record: messages[0].n: 123456789012345678901 is more than 64 bits hold");
  const std::string refused =
      error("\n{{ raise_exception('no system') }}", R"({"messages": [{"role": "system"}]})");
  CHECK(refused.starts_with("record: '"));
  CHECK(refused.ends_with("chat_template.jinja': line 2: the template says: no system"));
}

TEST_CASE("chat template: a prompt is one turn of a user, with the beginning of the answer") {
  const test::TempDir temp;
  temp.write("chat_template.jinja",
             "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}"
             "{% if add_generation_prompt %}assistant:{% endif %}");
  CHECK(template_in(temp.path()).render_turn("\"hi\"\n\\").bytes() == "user:\"hi\"\n\\;assistant:");
}

}  // namespace fp8kv
