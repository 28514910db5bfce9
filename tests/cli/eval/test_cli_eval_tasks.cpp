// `fp8kv eval --task` reads items, asks every cache, compares the answers and sets the exit code.
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "json/json.h"
#include "support/places.h"
#include "support/program/run_cli.h"
#include "support/says.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

const std::string kTaskModel = (test::source_dir() / "datasets/demo").string();

void write_items(const test::TempDir& folder, const std::string& name, int count) {
  std::ofstream file(folder.path() / name);
  for (int i = 0; i < count; ++i) {
    const int a = i % 7, b = i % 5;
    file << cat(R"({"question": "What is )", a, " plus ", b, R"(?", "choices": {"text": [")", a + b,
                R"(", ")", a + b + 1, R"( or more", "no"], "label": ["A", "B", "C"]},)",
                R"( "answerKey": ")", std::string(1, static_cast<char>('A' + i % 3)), "\"}\n");
  }
}

test::CliResult ask(const test::TempDir& folder, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"eval", kTaskModel, "--unit-scales", "-q"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return test::run_cli(arguments, folder.path());
}

using test::says;

TEST_CASE("cli eval tasks: choices are answered by every cache, and compared in pairs") {
  const test::TempDir folder;
  write_items(folder, "items.jsonl", 12);
  const test::CliResult result =
      ask(folder, {"--task", "choices=items.jsonl", "--kv-cache-dtype", "fp8_e4m3,bfloat16"});
  CHECK(result.err == "");
  CHECK(result.exit_code == 0);
  CHECK(says(result.out,
             "task      choices items.jsonl (arc), 0-shot, 12 of 12 items; compared by "
             "acc_norm\n"));
  CHECK(says(result.out, "wins  losses  ties"));
  CHECK(says(result.out, "fp8_e4m3 unit"));
}

TEST_CASE("cli eval tasks: JSON has every answer, the same for any number of threads") {
  const test::TempDir folder;
  write_items(folder, "items.jsonl", 9);
  const std::vector<std::string> arguments = {
      "--task", "choices=items.jsonl", "--few-shot", "2", "--items", "5", "--json", "--threads"};
  std::vector<std::string> alone = arguments, together = arguments;
  alone.emplace_back("1");
  together.emplace_back("3");
  const test::CliResult result = ask(folder, alone);
  REQUIRE(result.exit_code == 0);
  const Json json = Json::parse(result.out, "stdout");
  CHECK(json.at("schema").as_string() == "fp8kv.tasks/1");
  const Json task = json.at("tasks")[0];
  CHECK(task.at("few_shot").as_int() == 2);
  REQUIRE(task.at("items").size() == 5);
  CHECK(task.at("items")[0].at("where").as_string() == "'items.jsonl':3");
  const Json cache = task.at("candidates")[0];
  CHECK(cache.at("answers").size() == 5);
  const Json score = cache.at("scores")[0];
  CHECK(score.at("wins").as_int() + score.at("losses").as_int() + score.at("ties").as_int() == 5);
  const auto answers = [](const std::string& text) {
    return text.substr(text.find("\"tasks\""));  // skips the device, which names the threads
  };
  CHECK(answers(ask(folder, together).out) == answers(result.out));
}

TEST_CASE("cli eval tasks: a cache that is not decided ends with 4, on the terminal and in JUnit") {
  const test::TempDir folder;
  write_items(folder, "items.jsonl", 12);
  const test::CliResult result = ask(folder, {"--task", "choices=items.jsonl", "--accept",
                                              "recovery >= 99%", "--junit", "tasks.xml"});
  CHECK(result.exit_code == 4);
  CHECK(says(result.err,
             "fp8kv: eval: choices: fp8_e4m3 unit is not decided: recovery >= 99%, "
             "after all 12 items"));
  std::ifstream file(folder.path() / "tasks.xml");
  const std::string xml((std::istreambuf_iterator<char>(file)), {});
  CHECK(says(xml, "tests=\"1\" failures=\"1\""));
  CHECK(says(xml, "choices items.jsonl: recovery &gt;= 99%"));
}

TEST_CASE("cli eval tasks: choices behind a chat are scored as answers of the model") {
  const test::TempDir folder;
  folder.write("chat.jsonl", R"({"messages": [{"role": "user", "content": "Is fire hot?"}],)"
                             R"( "choices": ["Yes, it is.", "No."], "answer": 0})"
                             "\n");
  // A prompt with these texts. Messages are joined like this where there is no template.
  folder.write("plain.jsonl", R"({"prompt": "user: Is fire hot?\nassistant:",)"
                              R"( "choices": ["Yes, it is.", "No."], "answer": 0})"
                              "\n");
  const test::CliResult refused = ask(folder, {"--task", "choices=chat.jsonl"});
  CHECK(refused.exit_code == 3);
  CHECK(says(refused.err, "has no chat template"));
  const auto answers = [&](const std::string& task) {
    const test::CliResult result =
        ask(folder, {"--task", task, "--chat-template", "none", "--json"});
    REQUIRE(result.err == "");
    return result.out.substr(result.out.find("\"main_score\""));
  };
  std::string plain = answers("choices=plain.jsonl");
  plain.replace(plain.find("plain"), 5, "chat");
  CHECK(answers("choices=chat.jsonl") == plain);
  CHECK(says(ask(folder, {"--task", "choices=chat.jsonl", "--few-shot", "1"}).err,
             "'chat.jsonl':1: --few-shot needs prompts, and the item has messages"));
}

TEST_CASE("cli eval tasks: an equal cache is accepted once enough items are there") {
  const test::TempDir folder;
  write_items(folder, "items.jsonl", 120);
  const test::CliResult result =
      ask(folder, {"--task", "choices=items.jsonl", "--accept", "recovery >= 50%",
                   "--kv-cache-dtype", "float32", "--baseline", "float32", "--unit-scales"});
  INFO(result.out);
  CHECK(result.exit_code == 0);
  CHECK(says(result.out, "accepted: recovery >= 50%, after "));
}

TEST_CASE("cli eval tasks: what cannot be asked is refused with the place and the way out") {
  const test::TempDir folder;
  write_items(folder, "items.jsonl", 3);
  std::ofstream(folder.path() / "none.jsonl") << "\n\n";
  std::ofstream(folder.path() / "long.jsonl")
      << cat(R"({"prompt": ")", std::string(20000, 'a'),
             R"( b", "choices": ["x", "y"], "answer": 0})", "\n");
  struct Refused {
    std::vector<std::string> arguments;
    int exit_code;
    std::string message;
  };
  const std::vector<Refused> rows = {
      {{"--task", "chess=items.jsonl"}, 2, "--task: is 'chess=items.jsonl', expected choices"},
      {{"--task", "choices"}, 2, "--task: is 'choices', expected choices=FILE"},
      {{"--task", "choices=gone.jsonl"}, 3, "'gone.jsonl'"},
      {{"--task", "choices=none.jsonl"}, 3, "'none.jsonl': "},
      {{"--task", "choices=long.jsonl"}, 3, "'long.jsonl':1: the item has "},
      {{"--task", "choices=items.jsonl", "--few-shot", "3"}, 3, "has no items beside the few-shot"},
      {{"--task", "choices=items.jsonl", "--fail-if", "default"}, 2, "--task"},
      {{"--task", "choices=items.jsonl", "--accept", "acc > 1"}, 2, "--accept: is 'acc > 1'"},
      {{}, 2, "--data is required"},
  };
  for (const Refused& row : rows) {
    CAPTURE(row.message);
    const test::CliResult result = ask(folder, row.arguments);
    INFO(result.err);
    CHECK(result.exit_code == row.exit_code);
    CHECK(says(result.err, row.message));
    CHECK(result.out == "");
  }
}

}  // namespace
}  // namespace fp8kv
