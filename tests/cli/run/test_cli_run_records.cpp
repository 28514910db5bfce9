// Options of `run`'s records, and answers to records that cannot be used.
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "json/json.h"
#include "support/program/run_cli.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

const char* const kLondon = "London is the capital of";

std::string demo() {
  return (test::source_dir() / "datasets/demo").string();
}

test::CliResult run(std::vector<std::string> arguments, const std::string& input = "") {
  arguments.insert(arguments.begin(), {"run", demo()});
  return test::run_cli(arguments, {.input = input});
}

std::string text_of(const std::vector<std::string>& arguments, const std::string& input = "") {
  const test::CliResult result = run(arguments, input);
  CHECK(result.exit_code == 0);
  return result.out;
}

std::vector<Json> records_of(const std::string& out) {
  std::istringstream in(out);
  std::vector<Json> records;
  for (std::string line; std::getline(in, line);) records.push_back(Json::parse(line, "stdout"));
  return records;
}

TEST_CASE("cli run: a record that cannot be used is answered with why, and the others as ever") {
  const std::string good = "{\"prompt\": \"London is the capital of\"}\n";
  const auto broken = [&](const std::string& bad, const std::string& message,
                          const std::string& help) {
    CAPTURE(bad);
    const test::CliResult result = run({"-", "--json", "-q", "-n", "3"}, good + bad + "\n" + good);
    CHECK(result.exit_code == 1);
    CHECK(result.err ==
          "fp8kv: run: 1 of 3 records could not be used\n"
          "help: their lines say why, under \"error\"\n");
    const std::vector<Json> records = records_of(result.out);
    REQUIRE(records.size() == 3);
    for (const size_t i : {0, 2}) {
      CHECK(records[i].at("index").as_int() == static_cast<int64_t>(i));
      CHECK(records[i].at("text").as_string() == " England. England");
    }
    CHECK(records[1].at("index").as_int() == 1);
    CHECK(records[1].at("error").at("message").as_string() == "standard input:2" + message);
    CHECK(records[1].at("error").get_string("help", "") == help);
    CHECK_FALSE(records[1].has("text"));
  };
  const std::string one_record = R"(write one JSON record a line: {"prompt": "..."})";
  const std::string options =
      "options of a record are max_tokens, temperature, top_k, top_p, seed, n, stop, "
      "stop_token_ids and logprobs, beside id and continuations";
  broken("London", ": not valid JSON at line 2, column 1: invalid literal", one_record);
  broken("[1]", ": is [1], expected an object", one_record);
  broken("{\"input\": \"b\"}", ": has none of prompt, text, messages, conversations and input_ids",
         R"(write one record a line: {"prompt": "..."})");
  broken("{\"prompt\": \"b\", \"text\": \"c\"}",
         ": has 'prompt' and 'text', of which only one may be there",
         "remove or rename the others");
  broken("{\"prompt\": \"b\", \"temprature\": 1}",
         ": has no option 'temprature', only 'temperature'", options);
  broken("{\"prompt\": \"b\", \"max_new_tokens\": 1}",
         ": has no option 'max_new_tokens', only 'max_tokens'", options);
  broken("{\"prompt\": \"b\", \"repetition_penalty\": 1.1}", ": has no option 'repetition_penalty'",
         options);
  broken("{\"prompt\": \"b\", \"top_p\": 0}", ": top_p: is 0, expected a number above 0, at most 1",
         "");
  broken("{\"prompt\": \"b\", \"max_tokens\": 0}",
         ": max_tokens: is 0, expected an integer from 1 to 2147483647", "");
  broken("{\"prompt\": \"b\", \"id\": [1]}", ": id: is [1], expected a string or a number", "");
  broken("{\"prompt\": \"b\", \"n\": 0}", ": n: is 0, expected an integer from 1 to 1024", "");
  broken("{\"prompt\": \"b\", \"stop\": [\"x\", \"\"]}",
         ": stop[1]: is an empty string, which is everywhere", "");
  broken("{\"prompt\": \"b\", \"stop\": 5}", ": stop: is a number (5), expected a string", "");
  broken("{\"prompt\": \"b\", \"stop_token_ids\": [9999]}",
         ": stop_token_ids[0]: is 9999, expected a token id from 0 to 2047", "");
  broken("{\"input_ids\": [1, -1]}", ": input_ids[1]: is -1, expected a token id from 0 to 2047",
         "");
  broken("{\"prompt\": \"b\", \"logprobs\": 21}",
         ": logprobs: is 21, expected an integer from 0 to 20", "");
  broken("{\"prompt\": \"b\", \"logprobs\": \"5\"}",
         ": logprobs: is a string (\"5\"), expected an integer", "");
  broken("{\"prompt\": \"b\", \"top_logprobs\": 5}",
         ": has no option 'top_logprobs', only 'logprobs'", options);
  broken("{\"prompt\": \"b\", \"continuation\": [\"c\"]}",
         ": has no option 'continuation', only 'continuations'", options);
  broken("{\"prompt\": \"b\", \"continuations\": \"c\"}",
         ": continuations: is \"c\", expected an array", "");
  broken("{\"prompt\": \"b\", \"continuations\": []}",
         ": continuations: is empty, expected at least one continuation", "");
  broken("{\"prompt\": \"b\", \"continuations\": [\" c\", 5]}",
         ": continuations[1]: is a number (5), expected a string", "");
  broken("{\"prompt\": \"b\", \"continuations\": [\" c\", \"\"]}",
         ": continuations[1]: '' adds no token to the prompt", "");
  broken("{\"prompt\": \"b\", \"continuations\": [\" c\"], \"max_tokens\": 3}",
         ": has 'max_tokens' beside 'continuations', which are given and not generated",
         "remove one of them");
  broken("{\"input_ids\": [1], \"continuations\": [[2, 2048]]}",
         ": continuations[0][1]: is 2048, expected a token id from 0 to 2047", "");
  broken("{\"input_ids\": [1], \"continuations\": [[]]}", ": continuations[0]: has no token ids",
         "");
  broken("{\"input_ids\": [1], \"continuations\": [\" c\"]}",
         ": continuations[0]: is \" c\", expected an array", "");
  broken("{\"input_ids\": [], \"continuations\": [[2]]}", " has no tokens",
         "give it some text; this model's tokenizer adds no token of its own");
  broken(
      "{\"messages\": [{\"role\": \"user\", \"content\": \"b\"}], "
      "\"continuations\": [\" c\"]}",
      ": continuations: cannot be scored behind a chat",
      "give the chat as it is rendered, as prompt or input_ids, and without --chat");
  broken("{\"input_ids\": []}", " has no tokens",
         "give it some text; this model's tokenizer adds no token of its own");
}

TEST_CASE("cli run: a refused record keeps its id, and its place where the order is of input") {
  const std::string records =
      "{\"prompt\": \"London is\", \"max_tokens\": 9}\n"
      "{\"prompt\": \"b\", \"top_k\": -1, \"id\": \"bad\"}\n"
      "{\"prompt\": \"A cow\", \"max_tokens\": 2}\n";
  for (const std::string order : {"input", "finished"}) {
    CAPTURE(order);
    const test::CliResult result = run({"-", "--json", "-q", "--order", order}, records);
    CHECK(result.exit_code == 1);
    std::string indices;
    for (const Json& record : records_of(result.out)) {
      indices += record.at("index").number_text();
      CHECK(record.has("error") == (record.at("index").as_int() == 1));
      if (record.has("error")) CHECK(record.at("id").as_string() == "bad");
    }
    CHECK(indices == (order == "input" ? "012" : "120"));
  }
  // Without --json, refusals go to stderr.
  const test::CliResult text = run({"-", "-q"}, records);
  CHECK(text.exit_code == 1);
  CHECK(text.out == text_of({"-", "-q"},
                            "{\"prompt\": \"London is\", \"max_tokens\": 9}\n"
                            "{\"prompt\": \"A cow\", \"max_tokens\": 2}\n"));
  CHECK(text.err ==
        "fp8kv: run: standard input:2: top_k: is -1, expected an integer from 0 to 2147483647\n"
        "fp8kv: run: 1 of 3 records could not be used\n"
        "help: why is said above, for each\n");
}

TEST_CASE("cli run: stop ends the text before it, whether streamed or not") {
  const std::string whole =
      records_of(text_of({"-p", kLondon, "-n", "24", "-q", "--json"}))[0].at("text").as_string();
  REQUIRE(whole.starts_with(" England. England is"));
  const auto stopped = [&](const std::string& options) {
    const std::string record =
        R"({"prompt": "London is the capital of", "max_tokens": 24, )" + options + "}\n";
    const Json json = records_of(text_of({"-", "-q", "--json"}, record))[0];
    const std::string text = json.at("text").as_string();
    CHECK(text_of({"-", "-q"}, record) == kLondon + text + "\n");
    CHECK(json.at("finish_reason").as_string() == (text == whole ? "length" : "stop"));
    CHECK((json.at("ids").size() < 24) == (text != whole));
    return text;
  };
  CHECK(stopped(R"("stop": ". Eng")") == " England");
  CHECK(stopped(R"("stop": ["nowhere", "land"])") == " Eng");
  CHECK(stopped(R"("stop": "nowhere to be seen")") == whole);
  CHECK(stopped(R"("stop": null)") == whole);
  const Json ids = records_of(text_of({"-p", kLondon, "-n", "24", "-q", "--json"}))[0].at("ids");
  const std::string third = ids[2].number_text();
  CHECK(whole.starts_with(stopped(cat("\"stop_token_ids\": [", third, "]"))));
}

TEST_CASE("cli run: n asks for several answers, each with a seed of its own") {
  const std::string record =
      R"({"prompt": "A cow", "n": 3, "seed": 5, "temperature": 2, "max_tokens": 12, "id": 7})"
      "\n";
  const std::string other = "{\"prompt\": \"London is\", \"max_tokens\": 3}\n";
  const auto answers = [&](const std::string& input, std::vector<std::string> more) {
    more.insert(more.begin(), {"-", "-q", "--json"});
    std::vector<std::string> texts;
    int64_t count = 0;
    for (const Json& json : records_of(text_of(more, input))) {
      if (!json.has("id")) continue;
      CHECK(json.at("id").as_int() == 7);
      CHECK(json.at("answer").as_int() == count++);
      texts.push_back(json.at("text").as_string());
    }
    return texts;
  };
  const std::vector<std::string> three = answers(record, {});
  REQUIRE(three.size() == 3);
  CHECK(three[0] != three[1]);
  CHECK(three[1] != three[2]);
  // The answers do not depend on other records, the batch or the number of threads.
  CHECK(answers(other + record + other, {}) == three);
  CHECK(answers(other + record, {"--max-batch", "1"}) == three);
  CHECK(answers(record, {"--threads", "3"}) == three);
  // The first answer is the answer to the same record without "n".
  const std::string one = R"({"prompt": "A cow", "seed": 5, "temperature": 2, "max_tokens": 12})";
  CHECK(records_of(text_of({"-", "-q", "--json"}, one))[0].at("text").as_string() == three[0]);
}

// A copy of the demo model.
struct OwnModel {
  OwnModel() { std::filesystem::copy(demo(), folder / "model"); }
  test::CliResult run(std::vector<std::string> arguments, const std::string& input = "") const {
    arguments.insert(arguments.begin(), {"run", "model"});
    return test::run_cli(arguments, {.folder = folder.path(), .input = input});
  }
  test::TempDir folder;
};

TEST_CASE("cli run: token ids need no tokenizer") {
  const OwnModel model;
  const std::string ids = "{\"input_ids\": [2, 61, 5], \"max_tokens\": 4}\n";
  const Json with = records_of(model.run({"-", "--json", "-q"}, ids).out)[0];
  std::filesystem::remove(model.folder / "model/tokenizer.json");
  const test::CliResult without = model.run({"-", "--json", "-q"}, ids);
  CHECK(without.exit_code == 0);
  CHECK(without.err == "");
  const Json answer = records_of(without.out)[0];
  CHECK(answer.at("ids").brief() == with.at("ids").brief());
  CHECK_FALSE(answer.has("text"));
  CHECK(without.out.find("\"prompt\": null, \"text\": null, ") != std::string::npos);
  const test::CliResult text = model.run({"-", "--json", "-q"}, "{\"prompt\": \"A cow\"}\n" + ids);
  CHECK(text.exit_code == 1);
  CHECK(records_of(text.out)[0].at("error").at("message").as_string() ==
        "standard input:1: is text, and the model has no tokenizer");
  CHECK(records_of(text.out)[1].at("ids").brief() == with.at("ids").brief());
  const test::CliResult shown = model.run({"-", "-q"}, ids);
  CHECK(shown.exit_code == 3);
  CHECK(shown.err ==
        "fp8kv: run: 'model': has no tokenizer.json, no tekken.json, no tokenizer.model, and no "
        "vocab.json with a "
        "merges.txt\n"
        "help: text needs the model's tokenizer; with --json, records with input_ids do "
        "not\n");
}

TEST_CASE("cli run: generation_config.json says how to sample, and flags and records win") {
  const OwnModel model;
  const auto text = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"-p", kLondon, "-n", "24", "-q"});
    return model.run(more).out;
  };
  const std::string greedy = text({});
  const std::string drawn = text({"--temperature", "1.5", "--top-k", "50", "--top-p", "0.95"});
  REQUIRE(greedy != drawn);
  model.folder.write("model/generation_config.json",
                     R"({"eos_token_id": 1, "do_sample": true, "temperature": 1.5, "top_k": 50,
                         "top_p": 0.95, "repetition_penalty": 1.05})");
  CHECK(text({}) == drawn);
  CHECK(text({"--temperature", "0"}) == greedy);
  CHECK(text({"--top-k", "1"}) == greedy);
  const test::CliResult said = model.run({"-p", "a", "-n", "1", "--top-k", "5"});
  CHECK(said.err.find("generation_config.json: sampling with temperature 1.5 and top_p 0.95 "
                      "(--temperature 0 takes the likeliest token); not supported, and left out: "
                      "repetition_penalty 1.05\n") != std::string::npos);
  CHECK(model
            .run({"-", "-q"},
                 cat(R"({"prompt": ")", kLondon, R"(", "max_tokens": 24, "temperature": 0})", "\n"))
            .out == greedy);
  model.folder.write("model/generation_config.json",
                     R"({"eos_token_id": 1, "temperature": 1.5, "top_k": 50})");
  CHECK(text({}) == greedy);
  CHECK(model.run({"-p", "a", "-n", "1"}).err.find("generation_config") == std::string::npos);
}

TEST_CASE("cli run: max_new_tokens of generation_config.json counts, and flags and records win") {
  const OwnModel model;
  const std::string record = cat(R"({"prompt": ")", kLondon, "\"}\n");
  const auto made = [&](std::vector<std::string> more, const std::string& line) {
    more.insert(more.begin(), {"-", "--json"});
    const test::CliResult result = model.run(more, line);
    return std::pair(records_of(result.out).at(0).at("ids").size(), result.err);
  };
  model.folder.write("model/generation_config.json", R"({"eos_token_id": 1})");
  const auto [n_before, err_before] = made({}, record);
  REQUIRE(n_before > 7);
  CHECK(err_before.find("generation_config.json") == std::string::npos);
  model.folder.write("model/generation_config.json", R"({"eos_token_id": 1, "max_new_tokens": 7})");
  const auto [n, err] = made({}, record);
  CHECK(n == 7);
  CHECK(err.find("generation_config.json: at most 7 new tokens (-n takes more or fewer)\n") !=
        std::string::npos);
  const auto [n_flag, err_flag] = made({"-n", "5"}, record);
  CHECK(n_flag == 5);
  CHECK(err_flag.find("new tokens") == std::string::npos);
  CHECK(made({}, cat(R"({"prompt": ")", kLondon, R"(", "max_tokens": 3})", "\n")).first == 3);
}

TEST_CASE("cli run: max_length of generation_config.json is not taken, and that is said") {
  const OwnModel model;
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"-p", kLondon});
    return model.run(more);
  };
  const test::CliResult before = run({});
  const std::string said =
      "generation_config.json: max_length 9 is not taken: at most 128 new tokens "
      "(-n takes more or fewer)\n";
  model.folder.write("model/generation_config.json", R"({"eos_token_id": 1, "max_length": 9})");
  const test::CliResult result = run({});
  CHECK(result.out == before.out);
  CHECK(result.err.find(said) != std::string::npos);
  CHECK(run({"-n", "5"}).err.find("max_length") == std::string::npos);
  model.folder.write("model/generation_config.json",
                     R"({"eos_token_id": 1, "max_length": 9, "max_new_tokens": 7})");
  CHECK(run({}).err.find("max_length") == std::string::npos);
}

}  // namespace
}  // namespace fp8kv
