// Chat templates in commands.
#include <doctest/doctest.h>

#include "json/json.h"
#include "support/places.h"
#include "support/program/run_cli.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;

const char* const kTemplate =
    "{{ bos_token }}{% for m in messages %}{{ m.role }} says: {{ m.content|trim }}"
    "<|end_of_text|>{% endfor %}{% if add_generation_prompt %}assistant says:{% endif %}";

// The demo model with a chat template, and conversations.
struct ChatModel {
  ChatModel() {
    fs::copy(test::source_dir() / "datasets/demo", temp / "model");
    temp.write("model/chat_template.jinja", kTemplate);
    temp.write(
        "chats.jsonl",
        R"({"messages": [{"role": "user", "content": " A cow? "}, {"role": "assistant", "content": "Yes."}]})"
        "\n"
        R"({"conversations": [{"from": "human", "value": "A cow?"}, {"from": "gpt", "value": "Yes."}]})"
        "\n");
    temp.write("same.jsonl",
               R"({"text": "user says: A cow?<|end_of_text|>assistant says: Yes.<|end_of_text|>"})"
               "\n"
               R"({"text": "user says: A cow?<|end_of_text|>assistant says: Yes.<|end_of_text|>"})"
               "\n");
  }
  test::CliResult run(const std::vector<std::string>& arguments) const {
    return test::run_cli(arguments, {.folder = temp.path()});
  }

  // The scale file of a calibration on `data`.
  std::string scales_of(const std::string& data) const {
    const test::CliResult made = run({"calibrate", "model", "--data", data, "--samples", "2", "-o",
                                      data + ".json", "--json", "-q"});
    CAPTURE(made.err);
    CHECK(made.exit_code == 0);
    const Json json = Json::parse(made.out, "scales");
    return JsonWriter(JsonWriter::Layout::one_line).value(json.at("layers")).text() + " of " +
           json.at("tokens").number_text();
  }

  test::TempDir temp;
};

}  // namespace

TEST_CASE("cli chat: calibrate renders conversations of either spelling, and says with what") {
  const ChatModel in;
  const test::CliResult made =
      in.run({"calibrate", "model", "--data", "chats.jsonl", "--samples", "2", "-o", "chat.json"});
  CAPTURE(made.err);
  CHECK(made.exit_code == 0);
  CHECK(made.err.find("chats are rendered with 'model/chat_template.jinja'\n") !=
        std::string::npos);
  CHECK(made.err.find("'chats.jsonl': JSON lines with 'messages' and 'conversations', took 2 "
                      "documents, 2 windows, ") != std::string::npos);
}

TEST_CASE("cli chat: scales are those of the text that the template makes") {
  const ChatModel in;
  CHECK(in.scales_of("chats.jsonl") == in.scales_of("same.jsonl"));
}

TEST_CASE("cli chat: the scale file names the template, inspect shows it, and merge keeps it") {
  const ChatModel in;
  const auto calibrate = [&](const std::string& data, const std::string& out,
                             const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"calibrate", "model", "--data", data, "--samples",
                                          "2",         "-o",    out,      "-q"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const test::CliResult made = in.run(arguments);
    CAPTURE(made.err);
    CHECK(made.exit_code == 0);
    const Json counted = Json::read(in.temp / out).at("fp8kv").at("counted");
    const auto named = counted.find("chat_templates");
    if (!named) return std::string("none");
    std::string names;
    for (size_t i = 0; i < named->size(); ++i)
      names += (i > 0 ? "; " : "") + (*named)[i].as_string();
    return names;
  };
  CHECK(calibrate("chats.jsonl", "chat.json", {}) == "chat_template.jinja");
  CHECK(calibrate("same.jsonl", "text.json", {}) == "none");
  CHECK(calibrate("chats.jsonl", "joined.json", {"--chat-template", "none"}) == "none");
  in.temp.write("sub/own.jinja", kTemplate);
  in.temp.write("more.jsonl", test::read_file(in.temp / "chats.jsonl") + "\n");
  CHECK(calibrate("more.jsonl", "own.json", {"--chat-template", "sub/own.jinja"}) == "own.jinja");
  CHECK(in.run({"inspect", "chat.json"}).out.find("\nchat template     chat_template.jinja\n") !=
        std::string::npos);
  CHECK(in.run({"inspect", "text.json"}).out.find("chat template") == std::string::npos);
  CHECK(in.run({"merge", "own.json", "chat.json", "-o", "both.json", "-q"}).exit_code == 0);
  const test::CliResult both = in.run({"inspect", "--json", "both.json"});
  CHECK(Json::parse(both.out, "stdout").at("chat_templates").brief() ==
        R"(["chat_template.jinja", "own.jinja"])");
  fs::remove(in.temp / "model/chat_template.jinja");
  in.temp.write("model/tokenizer_config.json",
                R"({"chat_template": [{"name": "default", "template": "a"},
                                      {"name": "rag", "template": "b{{ messages[0].content }}"}]})");
  CHECK(calibrate("chats.jsonl", "named.json", {"--chat-template", "rag"}) ==
        "tokenizer_config.json (chat_template 'rag')");
}

TEST_CASE("cli chat: run takes a prompt as one turn, and records of messages up to the answer") {
  const ChatModel in;
  const auto prompt_of = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"run", "model", "--json", "-q", "-n", "1"});
    const test::CliResult result = in.run(more);
    CAPTURE(result.err);
    CHECK(result.exit_code == 0);
    return Json::parse(result.out.substr(0, result.out.find('\n')), "answer");
  };
  const std::string turn = "<|begin_of_text|>user says: A cow?<|end_of_text|>assistant says:";
  CHECK(prompt_of({"--chat", "-p", " A cow? "}).at("prompt").as_string() == turn);
  CHECK(prompt_of({"--prompts", "chats.jsonl"}).at("prompt").as_string() ==
        "<|begin_of_text|>user says: A cow?<|end_of_text|>assistant says: Yes.<|end_of_text|>"
        "assistant says:");
  const auto tokens_of = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"--chat", "-p", "<|end_of_text|>"});
    return prompt_of(more).at("prompt_tokens").as_int();
  };
  CHECK(tokens_of({"--user-special-tokens"}) < tokens_of({}));
  in.temp.write("short.jinja", "{{ messages[0].content }}!");
  CHECK(
      prompt_of({"--chat", "--chat-template", "short.jinja", "-p", "A"}).at("prompt").as_string() ==
      "A!");
  CHECK(prompt_of({"--chat", "--chat-template", "none", "-p", "A"}).at("prompt").as_string() ==
        "user: A\nassistant:");
}

TEST_CASE("cli chat: a model without a template is an error with ways out") {
  const ChatModel in;
  fs::remove(in.temp / "model/chat_template.jinja");
  const std::string rest =
      "'model': has no chat template, no chat_template.jinja, no chat_template in its "
      "tokenizer_config.json, and no chat_template.json\n"
      "help: pass --chat-template FILE, such as that of the model's chat variant, or "
      "--chat-template none to join messages as 'role: content'\n";
  const test::CliResult made = in.run({"calibrate", "model", "--data", "chats.jsonl", "-q"});
  CHECK(made.exit_code == 3);
  CHECK(made.err == "fp8kv: calibrate: " + rest);
  CHECK(in.run({"eval", "model", "--data", "chats.jsonl", "-q"}).err == "fp8kv: eval: " + rest);
  CHECK(in.run({"run", "model", "--chat", "-p", "a", "-q"}).err == "fp8kv: run: " + rest);
  CHECK(in.run({"calibrate", "model", "--data", "chats.jsonl", "--chat-template", "none", "-q"})
            .exit_code == 0);
}

TEST_CASE("cli chat: a conversation that the template refuses is named with its line") {
  const ChatModel in;
  in.temp.write("model/chat_template.jinja",
                "{% if messages|length > 1 %}\n{{ raise_exception('one turn only') }}{% endif %}");
  const test::CliResult made = in.run({"calibrate", "model", "--data", "chats.jsonl", "-q"});
  CHECK(made.exit_code == 3);
  CHECK(made.err ==
        "fp8kv: calibrate: 'chats.jsonl':1: 'model/chat_template.jinja': line 2: the template "
        "says: one turn only\n");
}

}  // namespace fp8kv
