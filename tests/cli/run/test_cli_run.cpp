#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "json/json.h"
#include "support/models/small_tokenizer.h"
#include "support/models/tiny_checkpoint.h"
#include "support/program/run_cli.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

const char* const kLondon = "London is the capital of";

std::string demo() {
  return (test::source_dir() / "datasets/demo").string();
}

// A scale file of the demo model, made once.
const std::string& demo_scales() {
  static const test::TempDir temp;
  static const std::string path = [] {
    const std::string file = (temp / "scales.json").string();
    const test::CliResult made = test::run_cli(
        {"calibrate", demo(), "--data", (test::source_dir() / "datasets/calibration.txt").string(),
         "--samples", "8", "--seq-len", "128", "-o", file, "-q"});
    REQUIRE(made.exit_code == 0);
    return file;
  }();
  return path;
}

// Runs the demo model with these arguments.
test::CliResult run(std::vector<std::string> arguments, const std::string& input = "") {
  arguments.insert(arguments.begin(), {"run", demo()});
  return test::run_cli(arguments, {.input = input});
}

// The output of a run that must succeed.
std::string text_of(const std::vector<std::string>& arguments, const std::string& input = "") {
  const test::CliResult result = run(arguments, input);
  CHECK(result.exit_code == 0);
  CAPTURE(result.err);
  return result.out;
}

std::vector<Json> records_of(const std::string& out) {
  std::istringstream in(out);
  std::vector<Json> records;
  for (std::string line; std::getline(in, line);) records.push_back(Json::parse(line, "stdout"));
  return records;
}

TEST_CASE("cli run: flags as llama.cpp and vLLM have them are the same as ours") {
  const std::string ours = text_of({kLondon, "--max-new-tokens", "6", "--temperature", "0",
                                    "--threads", "1", "--max-batch", "2"});
  CHECK(text_of({kLondon, "--n-predict", "6", "--temp", "0", "-t", "1", "--max-num-seqs", "2"}) ==
        ours);
  CHECK(text_of({kLondon, "--max_tokens=6", "--temp=0", "--num-threads", "1"}) == ours);
}

TEST_CASE("cli run: the prompt and its continuation are all there is on stdout") {
  const test::CliResult result = run({"--prompt", kLondon, "-n", "6"});
  CHECK(result.exit_code == 0);
  CHECK(result.out == "London is the capital of England. England is a country\n");
  CHECK(text_of({kLondon, "-n", "6"}) == result.out);
  CHECK(test::lasting_lines(result.err) ==
        "KV cache: 1,536 bytes a token; 96.0 KiB hold 64 tokens (float16: 64, fp8: 128)\n");
  CHECK(run({"--prompt", kLondon, "-n", "6", "-q"}).err == "");
}

TEST_CASE("cli run: calibrated scales answer as the float cache, unit scales do not") {
  const std::vector<std::string> prompt = {"--prompt", kLondon, "-n", "24", "-q"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), prompt.begin(), prompt.end());
    return text_of(more);
  };
  const std::string as_float = with({});
  CHECK(with({"--scales", demo_scales()}) == as_float);
  CHECK(with({"--scales", demo_scales(), "--kv-cache-dtype", "fp8"}) == as_float);
  CHECK(with({"--scales", demo_scales(), "--kv-cache-dtype", "fp8_e4m3fnuz"}) == as_float);
  CHECK(with({"--kv-cache-dtype", "float32"}) == as_float);
  CHECK(with({"--unit-scales"}) != as_float);
}

TEST_CASE("cli run: prompts come from the command line, a file or standard input alike") {
  const test::TempDir temp;
  const std::string records = "{\"prompt\": \"London is the capital of\"}\n\n{\"text\": \"A cow\"}";
  const std::string file = temp.write("prompts.jsonl", records).string();
  const std::string given = text_of({"--prompt", kLondon, "A cow", "-n", "4", "-q"});
  CHECK(text_of({"--prompt", kLondon, "--prompt", "A cow", "-n", "4", "-q"}) == given);
  CHECK(text_of({"--prompts", file, "-n", "4", "-q"}) == given);
  CHECK(text_of({"--prompts", "-", "-n", "4", "-q"}, records) == given);
  CHECK(text_of({"-", "-n", "4", "-q"}, records) == given);
}

TEST_CASE("cli run: several prompts get the text that each gets alone") {
  const std::vector<std::string> prompts = {kLondon, "Blue and yellow make",
                                            "The day after Tuesday is"};
  std::vector<std::string> together = {"-n", "12", "-q", "--prompt"};
  std::string alone;
  for (const std::string& prompt : prompts) {
    together.push_back(prompt);
    alone += (alone.empty() ? "" : "\n") + text_of({"-n", "12", "-q", "--prompt", prompt});
  }
  CHECK(text_of(together) == alone);
}

TEST_CASE("cli run: a prompt is taken to the letter") {
  for (const std::string prompt :
       {"[INST] a, b [/INST]", "{}", "", "-5 + 5 is", "%%", "[]", "[[aabb]]", "a, b]", "[a]\x1f"}) {
    CAPTURE(prompt);
    const std::vector<Json> records =
        records_of(text_of({"-n", "1", "-q", "--json", "--prompt", prompt, "[a,b]"}));
    REQUIRE(records.size() == 2);
    CHECK(records[0].at("prompt").as_string() == prompt);
    CHECK(records[1].at("prompt").as_string() == "[a,b]");
  }
  for (const std::string argument : {"--prompt=[a, b]", "-p[a, b]"}) {
    const std::vector<Json> records = records_of(text_of({"-n", "1", "-q", "--json", argument}));
    REQUIRE(records.size() == 1);
    CHECK(records[0].at("prompt").as_string() == "[a, b]");
  }
}

TEST_CASE("cli run: --json is one record a prompt, in their order") {
  const std::vector<Json> records =
      records_of(text_of({"-n", "3", "-q", "--json", "--prompt", kLondon, "A \"cow\"\n"}));
  REQUIRE(records.size() == 2);
  for (size_t i = 0; i < 2; ++i) {
    CHECK(records[i].at("schema").as_string() == "fp8kv.run/1");
    CHECK(records[i].at("index").as_int() == static_cast<int64_t>(i));
    CHECK(records[i].at("ids").size() == 3);
    CHECK(records[i].at("finish_reason").as_string() == "length");
  }
  CHECK(records[0].at("prompt_tokens").as_int() == 7);
  CHECK(records[0].at("text").as_string() == " England. England");
  CHECK(records[1].at("prompt").as_string() == "A \"cow\"\n");
}

TEST_CASE("cli run: a record's options win over the command line's, and its id comes back") {
  const std::string records =
      R"({"prompt": "London is the capital of", "max_tokens": 2, "id": "a\"b"})"
      "\n"
      R"({"text": "A cow", "temperature": 2, "top_k": 40, "top_p": 0.9, "seed": 5, "id": 7})"
      "\n";
  const std::vector<Json> made = records_of(text_of({"-", "--json", "-q", "-n", "5"}, records));
  REQUIRE(made.size() == 2);
  CHECK(made[0].at("id").as_string() == "a\"b");
  CHECK(made[0].at("ids").size() == 2);
  CHECK(made[0].at("text").as_string() == " England.");
  CHECK(made[1].at("id").as_int() == 7);
  CHECK(made[1].at("ids").size() == 5);
  // Flags give this prompt alone the same options.
  const std::vector<Json> alone =
      records_of(text_of({"--prompt", "A cow", "--json", "-q", "-n", "5", "--temperature", "2",
                          "--top-k", "40", "--top-p", "0.9", "--seed", "5"}));
  CHECK(alone[0].at("text").as_string() == made[1].at("text").as_string());
  CHECK_FALSE(alone[0].has("id"));
}

TEST_CASE("cli run: prompts are text, a chat or ids") {
  const std::string ids =
      records_of(text_of({"--json", "-q", "-n", "3", "-p", kLondon}))[0].at("text").as_string();
  CHECK(ids == " England. England");
  const std::string records = R"({"input_ids": [2, 61, 5]})"
                              "\n"
                              R"({"messages": [{"role": "user", "content": "What is a cow?"}]})"
                              "\n";
  const std::vector<Json> made =
      records_of(text_of({"-", "--json", "-q", "-n", "3", "--chat-template", "none"}, records));
  REQUIRE(made.size() == 2);
  CHECK(made[0].at("prompt_tokens").as_int() == 3);
  CHECK(made[1].at("prompt").as_string() == "user: What is a cow?\nassistant:");
}

TEST_CASE("cli run: special tokens that joined messages spell are text unless asked for") {
  const std::string records = R"({"messages": [{"role": "user", "content": "A <|end_of_text|>"}]})"
                              "\n"
                              R"({"prompt": "A <|end_of_text|>"})"
                              "\n";
  const auto tokens = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"-", "--json",          "-q",  "-n",
                                          "1", "--chat-template", "none"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::vector<int64_t> counts;
    for (const Json& record : records_of(text_of(arguments, records)))
      counts.push_back(record.at("prompt_tokens").as_int());
    return counts;
  };
  const std::vector<int64_t> text = tokens({}), special = tokens({"--user-special-tokens"});
  CHECK(text[0] > special[0]);
  CHECK(text[1] == special[1]);  // the second prompt is not a chat
  CHECK(tokens({"--chat"})[1] > tokens({"--chat", "--user-special-tokens"})[1]);
}

TEST_CASE("cli run: answers come in the order of prompts, or as they are done") {
  const std::string records =
      "{\"prompt\": \"London is\", \"max_tokens\": 9}\n{\"prompt\": \"A cow\", "
      "\"max_tokens\": 2}\n";
  const auto indices = [&](const std::string& order) {
    std::string text;
    for (const Json& record : records_of(text_of({"-", "--json", "-q", "--order", order}, records)))
      text += record.at("index").number_text();
    return text;
  };
  CHECK(indices("input") == "01");
  CHECK(indices("finished") == "10");
  const std::string in_order = text_of({"-", "-q"}, records);
  const size_t half = in_order.find("\n\n") + 1;
  CHECK(text_of({"-", "-q", "--order", "finished"}, records) ==
        in_order.substr(half + 1) + "\n" + in_order.substr(0, half));
}

TEST_CASE("cli run: a pipeline gets each answer while it still asks") {
  // Standard input stays open until the answer is printed.
  const test::CliResult result = test::run_cli(
      {"run", demo(), "-", "--json", "-q", "-n", "3"},
      {.input = "{\"prompt\": \"London is the capital of\"}\n{\"prompt\": \"unfinished",
       .interrupt_when = [](const test::CliResult& so_far) { return so_far.out.ends_with("\n"); }});
  CHECK(result.exit_code == 130);
  const std::vector<Json> made = records_of(result.out);
  REQUIRE(made.size() == 1);
  CHECK(made[0].at("text").as_string() == " England. England");
}

TEST_CASE("cli run: of a file, every prompt is checked before the first is answered") {
  const test::TempDir temp;
  const std::string file =
      temp.write("p.jsonl", "{\"prompt\": \"a\"}\n{\"prompt\": \"b\", \"seed\": -1}").string();
  const test::CliResult result = run({"--prompts", file});
  CHECK(result.exit_code == 3);
  CHECK(result.out == "");
  CHECK(result.err == "fp8kv: run: " + quote(file) +
                          ":2: seed: is -1, expected an integer from 0 to 9223372036854775807\n");
}

TEST_CASE("cli run: --gpu-memory decides how much is cached, and says what is too little") {
  const std::vector<std::string> prompt = {"--prompt", kLondon, "-n", "6"};
  const auto with = [&](const std::string& memory) {
    std::vector<std::string> arguments = prompt;
    arguments.insert(arguments.end(), {"--gpu-memory", memory});
    return run(arguments);
  };
  const test::CliResult refused = with("5MiB");
  CHECK(refused.exit_code == 5);
  CHECK(refused.out == "");
  const std::string key = "give at least ";
  const size_t at = refused.err.find(key) + key.size();
  const std::string least = refused.err.substr(at, refused.err.find(',', at) - at);
  CHECK(with(least).exit_code == 0);
  CHECK(with(cat(std::stoll(least) - 2, "KiB")).exit_code == 5);
  // The rest of the message depends on the processor's scratch memory.
  CHECK(refused.err.find("--gpu-memory 5.00 MiB: 96KiB of cache are needed for the longest prompt "
                         "and its answer (1 page) beside 5.25 MiB of weights and ") !=
        std::string::npos);
}

// The tokenizer has 8 tokens, and the model has 64 ids.
TEST_CASE("cli run: an id of a padded vocabulary has no text, and the answer comes with a note") {
  const test::TempDir temp;
  test::write_tiny_checkpoint(temp / "model", test::tiny_config());
  temp.write("model/tokenizer.json", test::SmallTokenizer().text());
  temp.write("ids.jsonl", "{\"input_ids\": [1, 5, 60, 2]}\n");
  const auto answer = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"run", "model", "--prompts", "ids.jsonl", "-n", "9"});
    return test::run_cli(more, {.folder = temp.path()});
  };
  const test::CliResult result = answer({"--json"});
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  const Json record = Json::parse(result.out, "stdout");
  const Json ids = record.at("ids");
  size_t without = 0, with = 0;
  for (size_t i = 0; i < ids.size(); ++i) ++(ids[i].as_int() < 8 ? with : without);
  REQUIRE(without > 0);
  CHECK(ids.size() == 9);
  CHECK(record.at("prompt").as_string() == "a-b");
  CHECK(record.at("text").as_string().empty() == (with == 0));
  CHECK(result.err.find(cat("generated ", count_of(without, "id"),
                            " that the tokenizer has no token for")) != std::string::npos);
  CHECK(answer({}).out == cat("a-b", record.at("text").as_string(), "\n"));
}

TEST_CASE("cli run: prompts that begin alike share pages, and it says how many") {
  std::string start;
  for (int i = 0; i < 40; ++i) start += "London is the capital of England. ";
  const test::CliResult result = run({"--prompt", start + "A", start + "The", "-n", "4"});
  CHECK(result.exit_code == 0);
  CHECK(result.err.find("\nprefix: ") != std::string::npos);
  const std::string alone = text_of({"--prompt", start + "The", "-n", "4", "-q"});
  CHECK(result.out.ends_with("\n\n" + alone));
}

TEST_CASE("cli run: the same bytes for any number of threads") {
  const std::vector<std::string> common = {"-q",          "-n",       "20",    "--scales",
                                           demo_scales(), "--prompt", kLondon, "A cow eats grass"};
  const auto with = [&](const std::string& threads) {
    std::vector<std::string> arguments = common;
    arguments.insert(arguments.end(), {"--threads", threads});
    return text_of(arguments);
  };
  const std::string one = with("1");
  CHECK(with("2") == one);
  CHECK(with("7") == one);
}

TEST_CASE("cli run: sampling follows its seed") {
  const auto with = [&](const std::string& seed) {
    return text_of({"-q", "-n", "24", "--prompt", kLondon, "--temperature", "1.5", "--top-k", "50",
                    "--top-p", "0.95", "--seed", seed});
  };
  const std::string seven = with("7");
  CHECK(with("7") == seven);
  CHECK(with("007") == seven);
  CHECK(with("8") != seven);
}

TEST_CASE("cli run: an FP8 cache without scales stops, and each way out works") {
  const test::CliResult stopped = run({"--kv-cache-dtype", "fp8", "--prompt", "a"});
  CHECK(stopped.exit_code == 3);
  CHECK(stopped.out == "");
  CHECK(stopped.err == "fp8kv: run: " + quote(demo()) +
                           ": no KV scales found, and an FP8 cache needs them\n"
                           "help: make some with 'fp8kv calibrate' and pass --scales FILE, or run "
                           "with --unit-scales to have every scale 1\n");
  const std::vector<std::string> common = {"-n", "2", "--kv-cache-dtype", "fp8", "--prompt", "a"};
  const auto cache_line = [&](std::vector<std::string> more) {
    more.insert(more.begin(), common.begin(), common.end());
    const test::CliResult result = run(more);
    CHECK(result.exit_code == 0);
    const size_t begin = result.err.find("; cache in ") + 2;
    return result.err.substr(begin, result.err.find('\n') - begin);
  };
  CHECK(cache_line({"--scales", demo_scales()}) ==
        "cache in fp8_e4m3 with the scales of " + quote(demo_scales()));
  CHECK(cache_line({"--unit-scales"}) == "cache in fp8_e4m3 with every scale 1");
}

TEST_CASE("cli run: E5M2 runs without scales and refuses them") {
  CHECK(run({"--kv-cache-dtype", "fp8_e5m2", "--prompt", "a", "-n", "1"}).exit_code == 0);
  const test::CliResult refused =
      run({"--kv-cache-dtype", "fp8_e5m2", "--scales", demo_scales(), "--prompt", "a"});
  CHECK(refused.exit_code == 2);
  CHECK(refused.out == "");
  CHECK(refused.err == "fp8kv: run: --kv-cache-dtype fp8_e5m2: the scales of " +
                           quote(demo_scales()) +
                           " are for E4M3; an E5M2 cache runs without scales\n"
                           "help: use fp8_e4m3, or a checkpoint without scales\n");
}

TEST_CASE("cli run: scales for a float cache are refused") {
  for (const std::vector<std::string>& flag :
       {std::vector<std::string>{"--unit-scales"}, {"--scales", demo_scales()}}) {
    std::vector<std::string> arguments = {"--kv-cache-dtype", "bfloat16", "--prompt", "a"};
    arguments.insert(arguments.end(), flag.begin(), flag.end());
    const test::CliResult refused = run(arguments);
    CHECK(refused.exit_code == 2);
    CHECK(refused.err ==
          "fp8kv: run: scales are for an FP8 cache, not for --kv-cache-dtype bfloat16\n"
          "help: leave out --scales and --unit-scales, or choose fp8\n");
  }
}

}  // namespace
}  // namespace fp8kv
