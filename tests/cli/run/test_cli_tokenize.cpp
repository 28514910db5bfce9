#include <doctest/doctest.h>

#include "support/places.h"
#include "support/program/run_cli.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;

// The demo model's tokenizer, and a chat template.
struct Place {
  Place() {
    for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) {
      fs::create_directories(temp / "model");
      fs::copy(test::source_dir() / "datasets/demo" / name, temp / "model" / name);
    }
    temp.write("model/chat_template.jinja",
               "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content|trim }}"
               "<|end_of_text|>{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}");
  }
  test::CliResult run(std::vector<std::string> arguments, const std::string& input = "") const {
    arguments.insert(arguments.begin(), {"tokenize", "model"});
    return test::run_cli(arguments, {.folder = temp.path(), .input = input});
  }
  // The output of a run that must succeed.
  std::string out(const std::vector<std::string>& arguments, const std::string& input = "") const {
    const test::CliResult result = run(arguments, input);
    CAPTURE(result.err);
    CHECK(result.exit_code == 0);
    return result.out;
  }

  test::TempDir temp;
};

}  // namespace

TEST_CASE(
    "cli tokenize: text, records and conversations with their ids, windows and what is skipped") {
  const Place in;
  in.temp.write("a.jsonl",
                R"({"messages": [{"role": "user", "content": " A cow? <|end_of_text|>"}]})"
                "\n"
                R"({"text": ""})"
                "\n"
                R"({"input_ids": [2, 61, 5]})"
                "\n");
  CHECK(in.out({"a.jsonl", "--seq-len", "8"}) ==
        R"('a.jsonl':1: messages, 20 tokens, 3 windows
<|begin_of_text|>user: A cow? <|end_of_text|><|end_of_text|>
window 1:
       0  0 <|begin_of_text|>  330 us  296 er  27 :  297 ĠA  993 Ġcow  32 ?  222 Ġ
window 2:
       8  29 <  93 |  867 end  64 _  80 o  71 f  64 _
window 3:
      15  372 te  776 xt  93 |  31 >  1 <|end_of_text|>

'a.jsonl':2: text, skipped: it is empty

'a.jsonl':3: input_ids, 3 tokens, 1 window
       0  2 !  61 \\  5 $
)");
  CHECK(in.out({"--records", "1", "-", "-q"}, "A cow?") ==
        "standard input: text, 4 tokens, 1 window\n"
        "A cow?\n"
        "       0  0 <|begin_of_text|>  34 A  993 Ġcow  32 ?\n");
}

TEST_CASE("cli tokenize: with --chat a text is what a user says, and a conversation is answered") {
  const Place in;
  const std::string turn = R"("text": "<|begin_of_text|>user: A cow?<|end_of_text|>assistant:")";
  CHECK(in.out({"--chat", "--json"}, "A cow?\n").find(turn) != std::string::npos);
  in.temp.write("a.jsonl", R"({"conversations": [{"from": "human", "value": "A cow?"}]})");
  CHECK(in.out({"a.jsonl", "--chat", "--json"}).find(turn) != std::string::npos);
  CHECK(in.out({"a.jsonl", "--chat", "--chat-template", "none", "--json"})
            .find(R"("text": "human: A cow?\nassistant:")") != std::string::npos);
}

TEST_CASE("cli tokenize: special tokens that joined messages spell are text unless asked for") {
  const Place in;
  in.temp.write("a.jsonl", R"({"messages": [{"role": "user", "content": "A<|end_of_text|>"}]})");
  in.temp.write("b.jsonl", R"({"text": "A<|end_of_text|>"})");
  const auto tokens = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--chat-template", "none", "--json", "-q"});
    const std::string out = in.out(arguments);
    const size_t at = out.find("\"tokens\"");
    return out.substr(at, out.find(']', at) - at);
  };
  const std::string special = "\"<|end_of_text|>\"";
  CHECK(tokens({"a.jsonl"}).find(special) == std::string::npos);
  CHECK(tokens({"a.jsonl", "--chat"}).find(special) == std::string::npos);
  CHECK(tokens({"b.jsonl", "--chat"}).find(special) == std::string::npos);
  CHECK(tokens({"a.jsonl", "--user-special-tokens"}).find(special) != std::string::npos);
  CHECK(tokens({"a.jsonl", "--chat", "--user-special-tokens"}).find(special) != std::string::npos);
  CHECK(tokens({"b.jsonl"}).find(special) != std::string::npos);  // a text is no message
}

TEST_CASE("cli tokenize: --json gives one object a record") {
  const Place in;
  const std::string records = R"({"messages": [{"role": "user", "content": "A <|end_of_text|>"}]})"
                              "\n"
                              R"({"text": ""})"
                              "\n";
  CHECK(in.out({"-", "--json", "-q", "--user-special-tokens"}, records) ==
        R"({"schema": "fp8kv.tokenize/1", "record": 1, "form": "messages", )"
        R"("text": "<|begin_of_text|>user: A <|end_of_text|><|end_of_text|>", )"
        R"("ids": [0, 330, 296, 27, 297, 222, 1, 1], "tokens": ["<|begin_of_text|>", "us", "er", )"
        R"(":", "ĠA", "Ġ", "<|end_of_text|>", "<|end_of_text|>"], "windows": [0]})"
        "\n"
        R"({"schema": "fp8kv.tokenize/1", "record": 2, "form": "text", "text": "", "ids": [], )"
        R"("tokens": [], "windows": [], "skipped": "empty"})"
        "\n");
}

TEST_CASE("cli tokenize: what cannot be shown is named") {
  const Place in;
  CHECK(in.run({"-"}, R"({"input_ids": [1, 999999]})")
            .err.find(
                "fp8kv: tokenize: standard input:1: input_ids[1]: is 999999, expected an id of the "
                "vocabulary, 0 to ") == 0);
  CHECK(in.run({"--seq-len", "1"}, "A cow").err ==
        "fp8kv: tokenize: a window of 1 token has no room for text: every prompt starts with 1 "
        "token of its own\nhelp: pass a larger --seq-len\n");
  fs::remove(in.temp / "model/tokenizer.json");
  const test::CliResult none = in.run({"-"}, "A cow");
  CHECK(none.exit_code == 3);
  CHECK(none.err ==
        "fp8kv: tokenize: 'model': has no tokenizer.json, no tekken.json, no tokenizer.model, and "
        "no vocab.json "
        "with a merges.txt\nhelp: check the path of the model\n");
}

}  // namespace fp8kv
