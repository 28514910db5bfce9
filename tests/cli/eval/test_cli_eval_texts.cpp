// `fp8kv eval --task` with gsm8k and generate: grades and compares the texts of every cache.
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "json/json.h"
#include "support/places.h"
#include "support/program/run_cli.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

// Writes problems whose right answer is a number that the model never writes.
void write_problems(const test::TempDir& folder, int count) {
  std::string lines;
  for (int i = 0; i < count; ++i) {
    lines +=
        cat(R"({"question": "What is )", i, R"( plus 2?", "answer": "So.\n#### 7,654,321"})", "\n");
  }
  folder.write("math.jsonl", lines);
}

void write_prompts(const test::TempDir& folder, int count) {
  std::string lines;
  for (int i = 0; i < count; ++i) {
    lines += cat(R"({"prompt": "Chapter )", i, R"(", "pattern": "(?s).", "max_tokens": 3})", "\n");
  }
  folder.write("prompts.jsonl", lines);
}

// Writes prompts whose right answer is `answers`, or any text if there are none.
void write_capitals(const test::TempDir& folder, const std::vector<std::string>& answers) {
  std::string lines;
  for (int i = 0; i < 40; ++i) {
    JsonWriter record(JsonWriter::Layout::one_line);
    record.begin_object().member("prompt", cat("Chapter ", i, ": London is the capital of"));
    record.member("max_tokens", 8);
    answers.empty() ? record.member("pattern", "(?s).")
                    : record.member("answer", answers[static_cast<size_t>(i)]);
    lines += record.end_object().text() + "\n";
  }
  folder.write("capitals.jsonl", lines);
}

test::CliResult ask_texts(const test::TempDir& folder, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"eval", (test::source_dir() / "datasets/demo").string(),
                                        "--unit-scales", "-q"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return test::run_cli(arguments, folder.path());
}

// The baseline and the candidate have the same dtype, so their texts are equal on any processor.
const std::vector<std::string> kAlike = {"--baseline", "float32", "--kv-cache-dtype", "float32"};

std::vector<std::string> alike(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), kAlike.begin(), kAlike.end());
  return arguments;
}

TEST_CASE("cli eval texts: generate grades the text of every cache, and compares the texts") {
  const test::TempDir folder;
  write_prompts(folder, 3);
  const test::CliResult result = ask_texts(folder, alike({"--task", "generate=prompts.jsonl"}));
  CHECK(result.err == "");
  CHECK(result.out ==
        "task      generate prompts.jsonl (prompt), 0-shot, 3 of 3 items; compared by match\n"
        "verdict   float32 keeps 100.0% of the match of float32 (95% interval 55.5% to 180.0%)\n"
        "cache               items            match  wins  losses  ties  p         recovery  "
        "same text  differs at  KLD until there\n"
        "float32 (baseline)      3  1.0000 ± 0.0000     -       -     -  -                -  "
        "        -           -                -\n"
        "float32                 3  1.0000 ± 0.0000     0       0     3  1  55.5% to 180.0%  "
        "   3 of 3           -            0 ± 0\n");
}

TEST_CASE("cli eval texts: --summary writes the same verdict and figures as Markdown") {
  const test::TempDir folder;
  write_prompts(folder, 3);
  const test::CliResult result =
      ask_texts(folder, alike({"--task", "generate=prompts.jsonl", "--summary", "summary.md"}));
  CHECK(result.err == "");
  const std::string model = (test::source_dir() / "datasets/demo").string();
  CHECK(test::read_file(folder / "summary.md") == "### fp8kv eval " + model + R"(

#### generate prompts.jsonl (prompt), 0-shot, 3 of 3 items; compared by match

**float32 keeps 100.0% of the match of float32 (95% interval 55.5% to 180.0%)**

| cache | items | match | wins | losses | ties | p | recovery | same text | differs at | KLD until there |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
| float32 (baseline) | 3 | 1.0000 ± 0.0000 | - | - | - | - | - | - | - | - |
| float32 | 3 | 1.0000 ± 0.0000 | 0 | 0 | 3 | 1 | 55.5% to 180.0% | 3 of 3 | - | 0 ± 0 |

)");
}

TEST_CASE("cli eval texts: gsm8k has both scores, and cannot compare caches without a right one") {
  const test::TempDir folder;
  write_problems(folder, 3);
  const test::CliResult result =
      ask_texts(folder, alike({"--task", "gsm8k=math.jsonl", "--few-shot", "1"}));
  CHECK(result.err == "");
  CHECK(result.out ==
        "task      gsm8k math.jsonl (gsm8k), 1-shot, 2 of 2 items; compared by strict-match\n"
        "verdict   float32 cannot be compared: float32 has no item right\n"
        "cache               items     strict-match  flexible-extract  wins  losses  ties  p  "
        "recovery  same text  differs at  KLD until there\n"
        "float32 (baseline)      2  0.0000 ± 0.0000   0.0000 ± 0.0000     -       -     -  -  "
        "       -          -           -                -\n"
        "float32                 2  0.0000 ± 0.0000   0.0000 ± 0.0000     0       0     2  1  "
        "       -     2 of 2           -            0 ± 0\n");
}

TEST_CASE("cli eval texts: a cache that is not decided ends with 4") {
  const test::TempDir folder;
  write_problems(folder, 2);
  const test::CliResult result = ask_texts(
      folder,
      alike({"--task", "gsm8k=math.jsonl", "--accept", "recovery >= 99%", "--junit", "tasks.xml"}));
  CHECK(result.exit_code == 4);
  CHECK(result.err ==
        "fp8kv: eval: gsm8k: float32 is not decided: recovery >= 99%, after all 2 items; no number "
        "like these would decide it\n");
  std::ifstream file(folder.path() / "tasks.xml");
  const std::string xml((std::istreambuf_iterator<char>(file)), {});
  CHECK(xml.find("gsm8k math.jsonl: recovery &gt;= 99%") != xml.npos);
}

// With scales of 1 the demo's K overflows, so an FP8 cache writes other texts than the baseline.
TEST_CASE("cli eval texts: a cache that loses the baseline's answers is refused, and ends with 1") {
  const test::TempDir folder;
  write_capitals(folder, {});
  const test::CliResult baseline =
      ask_texts(folder, alike({"--task", "generate=capitals.jsonl", "--json"}));
  REQUIRE(baseline.exit_code == 0);
  const Json texts =
      Json::parse(baseline.out, "stdout").at("tasks")[0].at("baseline").at("answers");
  std::vector<std::string> answers;
  for (size_t i = 0; i < texts.size(); ++i) {
    answers.push_back(texts[i].at("text").as_string());
  }
  write_capitals(folder, answers);
  const test::CliResult result =
      ask_texts(folder, {"--task", "generate=capitals.jsonl", "--accept", "recovery >= 90%",
                         "--baseline", "float32", "--kv-cache-dtype", "float32,fp8_e4m3"});
  INFO(result.out);
  CHECK(result.exit_code == 1);
  CHECK(result.err.find("generate: fp8_e4m3 unit is refused: recovery is below 90%, after ") !=
        std::string::npos);
}

TEST_CASE("cli eval texts: an equal cache is accepted once enough items are there") {
  const test::TempDir folder;
  write_prompts(folder, 80);
  const test::CliResult result =
      ask_texts(folder, alike({"--task", "generate=prompts.jsonl", "--accept", "recovery >= 50%"}));
  INFO(result.out);
  CHECK(result.exit_code == 0);
  CHECK(result.out.find("accepted: recovery >= 50%, after ") != std::string::npos);
}

TEST_CASE("cli eval texts: JSON has every text, the same for any number of threads") {
  const test::TempDir folder;
  folder.write("prompts.jsonl",
               R"({"prompt": "London is", "answer": "the capital", "max_tokens": 9})"
               "\n"
               R"j({"prompt": "London is", "pattern": "(\\w*)", "answer": "x", "max_tokens": 2})j"
               "\n");
  const auto ask = [&](const std::string& threads) {
    return ask_texts(folder, {"--task", "generate=prompts.jsonl", "--json", "--threads", threads});
  };
  const test::CliResult result = ask("1");
  REQUIRE(result.exit_code == 0);
  const Json task = Json::parse(result.out, "stdout").at("tasks")[0];
  const Json cache = task.at("candidates")[0];
  CHECK(cache.at("texts").at("compared").as_int() == 2);
  CHECK(cache.at("texts").at("kld").as_double() > 0);
  const Json first = cache.at("answers")[0], second = cache.at("answers")[1];
  CHECK(first.at("kld_tokens").as_int() >= 1);
  CHECK(first.at("kld_tokens").as_int() <= 9);
  CHECK(first.at("tokens").as_int() == 9);
  CHECK(first.at("finish_reason").as_string() == "length");
  CHECK(second.at("tokens").as_int() == 2);
  // Both items have the same prompt.
  CHECK(first.at("text").as_string().starts_with(second.at("text").as_string()));
  const auto answers = [](const std::string& text) { return text.substr(text.find("\"tasks\"")); };
  CHECK(answers(ask("3").out) == answers(result.out));
}

TEST_CASE("cli eval texts: a stop string ends the text and is no part of it") {
  const test::TempDir folder;
  const auto answer_to = [&](const std::string& stop) {
    JsonWriter record(JsonWriter::Layout::one_line);
    record.begin_object().member("prompt", "London is").member("pattern", "x");
    record.member("max_tokens", 6).member("stop", stop).end_object();
    folder.write("one.jsonl", record.text() + "\n");
    const test::CliResult result = ask_texts(folder, {"--task", "generate=one.jsonl", "--json"});
    REQUIRE(result.exit_code == 0);
    return Json::parse(result.out, "stdout").at("tasks")[0].at("baseline").at("answers")[0];
  };
  const std::string whole = answer_to("no such text").at("text").as_string();
  REQUIRE(whole.size() > 5);
  const std::string stop = whole.substr(3, 2);
  const Json cut = answer_to(stop);
  CHECK(cut.at("text").as_string() == whole.substr(0, whole.find(stop)));
  CHECK(cut.at("finish_reason").as_string() == "stop");
}

TEST_CASE("cli eval texts: messages are joined where the model has no template") {
  const test::TempDir folder;
  folder.write("chat.jsonl", R"({"messages": [{"role": "user", "content": "Where?"}],)"
                             R"( "pattern": "(?s).", "max_tokens": 3})"
                             "\n");
  const std::vector<std::string> arguments = {"--task", "generate=chat.jsonl"};
  CHECK(ask_texts(folder, arguments).err.find("has no chat template") != std::string::npos);
  const test::CliResult result =
      ask_texts(folder, {"--task", "generate=chat.jsonl", "--chat-template", "none"});
  CHECK(result.err == "");
  CHECK(result.out.find("generate chat.jsonl (messages), 0-shot, 1 of 1 item") !=
        std::string::npos);
}

TEST_CASE("cli eval texts: what cannot be asked is refused with the place and the way out") {
  const test::TempDir folder;
  folder.write("no-question.jsonl", "{\"answer\": \"#### 2\"}\n");
  folder.write("long.jsonl",
               cat(R"({"question": ")", std::string(1500, '!'), R"(", "answer": "#### 2"})", "\n"));
  folder.write("mixed.jsonl",
               "{\"prompt\": \"a\", \"answer\": \"b\"}\n{\"messages\": [], \"answer\": \"b\"}\n");
  folder.write("chats.jsonl",
               "{\"messages\": [], \"answer\": \"b\"}\n{\"messages\": [], \"answer\": \"b\"}\n");
  folder.write("shots.jsonl", "{\"prompt\": \"a\", \"pattern\": \"b\"}\n");
  struct RefusedTexts {
    std::vector<std::string> arguments;
    std::string message;
  };
  const std::vector<RefusedTexts> rows = {
      {{"gsm8k=no-question.jsonl"}, "'no-question.jsonl':1: the key 'question' is missing"},
      {{"gsm8k=long.jsonl"}, "'long.jsonl':1: the prompt has "},
      {{"gsm8k=long.jsonl"}, " tokens and its text may have 256, the model's context is 512"},
      {{"generate=mixed.jsonl"}, "'mixed.jsonl':2: has messages, and the items before it have"},
      {{"generate=chats.jsonl", "--few-shot", "1"},
       "'chats.jsonl':1: is to be a few-shot example, and has no prompt"},
      {{"generate=mixed.jsonl", "--items", "1", "--few-shot", "1", "--few-shot-from",
        "shots.jsonl"},
       "'shots.jsonl':1: is to be a few-shot example, and has no answer"},
  };
  for (const RefusedTexts& row : rows) {
    CAPTURE(row.message);
    std::vector<std::string> arguments = {"--task"};
    arguments.insert(arguments.end(), row.arguments.begin(), row.arguments.end());
    const test::CliResult result = ask_texts(folder, arguments);
    INFO(result.err);
    CHECK(result.exit_code == 3);
    CHECK(result.err.find(row.message) != std::string::npos);
    CHECK(result.out == "");
  }
}

}  // namespace
}  // namespace fp8kv
