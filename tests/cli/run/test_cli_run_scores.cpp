// `run --logprobs`, `--stop`, `--samples-per-prompt`, and records with continuations.
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "json/json.h"
#include "support/program/run_cli.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

using Arguments = std::vector<std::string>;

const char* const kLondon = "London is the capital of";

std::string demo() {
  return (test::source_dir() / "datasets/demo").string();
}

test::CliResult run(Arguments arguments, const std::string& input = "") {
  arguments.insert(arguments.begin(), {"run", demo()});
  return test::run_cli(arguments, {.input = input});
}

std::vector<Json> records(Arguments arguments, const std::string& input = "") {
  arguments.insert(arguments.end(), {"--json", "-q"});
  const test::CliResult result = run(arguments, input);
  CAPTURE(result.err);
  CHECK(result.exit_code == 0);
  std::istringstream in(result.out);
  std::vector<Json> made;
  for (std::string line; std::getline(in, line);) made.push_back(Json::parse(line, "stdout"));
  return made;
}

std::string text(const Json& json) {
  return JsonWriter(JsonWriter::Layout::one_line).value(json).text();
}

// Joins the bytes of all tokens to one text.
std::string joined_bytes(const Json& content) {
  std::string joined;
  for (size_t i = 0; i < content.size(); ++i) {
    const Json bytes = content[i].at("bytes");
    for (size_t k = 0; k < bytes.size(); ++k) joined += static_cast<char>(bytes[k].as_int());
  }
  return joined;
}

TEST_CASE("cli run: --logprobs gives each token and the likeliest, as OpenAI's chats do") {
  const Json record = records({kLondon, "-n", "4", "--logprobs", "2"})[0];
  CHECK(record.at("text").as_string() == " England. England is");
  const Json content = record.at("logprobs").at("content");
  REQUIRE(content.size() == 4);
  CHECK(joined_bytes(content) == " England. England is");
  for (size_t i = 0; i < content.size(); ++i) {
    const Json token = content[i], top = token.at("top_logprobs");
    CHECK(token.at("id").as_int() == record.at("ids")[i].as_int());
    REQUIRE(top.size() == 2);
    // The generated token is the likeliest one.
    for (const char* key : {"id", "token", "logprob", "bytes"}) {
      CHECK(text(top[0].at(key)) == text(token.at(key)));
    }
    CHECK(top[1].at("logprob").as_double() < top[0].at("logprob").as_double());
    CHECK(std::exp(top[0].at("logprob").as_double()) + std::exp(top[1].at("logprob").as_double()) <
          1 + 1e-12);
  }
  CHECK(content[0].at("token").as_string() == " England");
  CHECK(content[1].at("token").as_string() == ".");
  CHECK_FALSE(records({kLondon, "-n", "1"})[0].has("logprobs"));
  CHECK(records({kLondon, "-n", "1", "--logprobs", "0"})[0]
            .at("logprobs")
            .at("content")[0]
            .at("top_logprobs")
            .size() == 0);
}

TEST_CASE("cli run: a record's logprobs win, and sampling does not change them") {
  const std::string input =
      R"({"prompt": "London is the capital of", "max_tokens": 1, "logprobs": 3})"
      "\n"
      R"({"prompt": "London is the capital of", "max_tokens": 1, "temperature": 2, "top_k": 5})"
      "\n"
      R"({"prompt": "London is the capital of", "max_tokens": 1, "logprobs": false})"
      "\n"
      R"({"prompt": "London is the capital of", "max_tokens": 1, "logprobs": true})"
      "\n"
      R"({"prompt": "London is the capital of", "max_tokens": 1, "logprobs": null})"
      "\n";
  const std::vector<Json> made = records({"-", "--logprobs", "2"}, input);
  REQUIRE(made.size() == 5);
  const auto top = [&](size_t i) {
    return made[i].at("logprobs").at("content")[0].at("top_logprobs");
  };
  CHECK(top(0).size() == 3);
  CHECK(text(top(1)) == text(top(4)));
  for (size_t k = 0; k < 2; ++k) CHECK(text(top(0)[k]) == text(top(1)[k]));
  CHECK_FALSE(made[2].has("logprobs"));
  CHECK(top(3).size() == 0);
}

TEST_CASE("cli run: log-probabilities are the same bytes in any batch and on any threads") {
  const std::string input =
      R"({"prompt": "A cow", "n": 3, "seed": 5, "temperature": 2, "max_tokens": 6, "logprobs": 4})"
      "\n"
      R"({"prompt": "London is the capital of", "continuations": [" England", " France. France"]})"
      "\n"
      R"({"prompt": "London is", "max_tokens": 9, "logprobs": 1})"
      "\n";
  const auto out = [&](Arguments more) {
    more.insert(more.begin(), {"-", "--json", "-q"});
    return run(more, input).out;
  };
  const std::string all = out({"--threads", "1"});
  CHECK(std::count(all.begin(), all.end(), '\n') == 5);
  CHECK(out({"--threads", "3"}) == all);
  CHECK(out({"--max-batch", "1"}) == all);
  CHECK(out({"--max-batch", "2", "--threads", "2"}) == all);
}

TEST_CASE("cli run: a stop across tokens cuts the text, and the tokens it is made of stay") {
  const std::string whole = records({kLondon, "-n", "6"})[0].at("text").as_string();
  CHECK(whole == " England. England is a country");
  const Json record =
      records({kLondon, "-n", "6", "--stop", "nowhere", "--stop", "d. En", "--logprobs", "0"})[0];
  CHECK(record.at("text").as_string() == " Englan");
  CHECK(record.at("finish_reason").as_string() == "stop");
  CHECK(record.at("ids").size() == 3);
  CHECK(joined_bytes(record.at("logprobs").at("content")) == " England. England");
  CHECK(run({"-q", "--stop", "d. En", kLondon}).out == "London is the capital of Englan\n");
  CHECK(run({"-q", "-n", "6", "--stop", "[a, b]", kLondon}).out == kLondon + whole + "\n");
  // A record's stop strings replace those of --stop.
  const auto with = [&](const std::string& stop) {
    return records({"-", "-n", "6", "--stop", " a"},
                   R"({"prompt": "London is the capital of", "stop": )" + stop + "}\n")[0]
        .at("text")
        .as_string();
  };
  CHECK(with("null") == " England. England is");
  CHECK(with("[]") == whole);
  CHECK(with("\" is\"") == " England. England");
}

TEST_CASE("cli run: --samples-per-prompt is n of records without one, on the command line too") {
  const Arguments sampling = {"--temperature", "2", "-n", "8", "--samples-per-prompt", "3"};
  Arguments two = {"-p", "A cow", "London is"};
  two.insert(two.end(), sampling.begin(), sampling.end());
  const std::vector<Json> made = records(two);
  REQUIRE(made.size() == 6);
  for (size_t i = 0; i < made.size(); ++i) {
    CHECK(made[i].at("answer").as_int() == static_cast<int64_t>(i % 3));
    CHECK(made[i].at("prompt").as_string() == (i < 3 ? "A cow" : "London is"));
  }
  CHECK(made[0].at("text").as_string() != made[1].at("text").as_string());
  Arguments stream = {"-"};
  stream.insert(stream.end(), sampling.begin(), sampling.end());
  CHECK(records(stream, "{\"prompt\": \"A cow\"}\n{\"prompt\": \"A cow\", \"n\": 1}\n").size() ==
        4);
  const test::CliResult same = run({"A cow", "-n", "2", "--n", "2"});
  CHECK(same.err.find("--samples-per-prompt 2: the answers to a prompt are all the same at "
                      "temperature 0\n") != std::string::npos);
  CHECK(same.out.substr(same.out.find("\n\n") + 2) + "\n" ==
        same.out.substr(0, same.out.find("\n\n") + 2));
}

TEST_CASE("cli run: given continuations are scored as the tokens that they are") {
  const std::string input =
      R"({"id": 7, "prompt": "London is the capital of", "continuations": [" England. England", " France"]})"
      "\n";
  const std::vector<Json> made = records({"-", "--kv-cache-dtype", "float32"}, input);
  REQUIRE(made.size() == 1);
  const Json scored = made[0];
  CHECK(scored.at("id").as_int() == 7);
  CHECK(scored.at("prompt").as_string() == kLondon);
  CHECK(scored.at("prompt_tokens").as_int() == 7);
  for (const char* absent : {"text", "ids", "finish_reason", "answer"}) {
    CHECK_FALSE(scored.has(absent));
  }
  const Json first = scored.at("continuations")[0], second = scored.at("continuations")[1];
  CHECK(first.at("text").as_string() == " England. England");
  CHECK(first.at("tokens").as_int() == 3);
  CHECK(first.at("greedy").as_bool());
  CHECK_FALSE(second.at("greedy").as_bool());
  CHECK(second.at("logprob").as_double() < -5);
  // A continuation that the model generates scores the sum of its tokens' log-probabilities.
  const Json generated =
      records({kLondon, "-n", "3", "--logprobs", "0", "--kv-cache-dtype", "float32"})[0];
  double sum = 0;
  const Json content = generated.at("logprobs").at("content");
  for (size_t i = 0; i < content.size(); ++i) sum += content[i].at("logprob").as_double();
  CHECK(text(first.at("ids")) == text(generated.at("ids")));
  CHECK(std::abs(first.at("logprob").as_double() - sum) < 1e-5);
  // A blank gives the same ids and score at the end of the prompt as before the continuation.
  const auto ids_of = [](const Json& list) { return text(list); };
  const Json prompt_ids =
      records({"-"}, cat(R"({"prompt": ")", kLondon, R"(", "max_tokens": 1})"))[0];
  CHECK(prompt_ids.at("prompt_tokens").as_int() == 7);
  const Json blank =
      records({"-", "--kv-cache-dtype", "float32"},
              R"({"prompt": "London is the capital of ", "continuations": ["France"]})")[0]
          .at("continuations")[0];
  CHECK(ids_of(blank.at("ids")) == ids_of(second.at("ids")));
  CHECK(blank.at("logprob").as_double() == second.at("logprob").as_double());
}

TEST_CASE("cli run: continuations of token ids have the text that they add, or none") {
  const std::string input = R"({"input_ids": [61, 5], "continuations": [[1448, 15], [1448]]})";
  const Json with = records({"-"}, input)[0].at("continuations");
  CHECK(with[0].at("text").as_string() == " England.");
  CHECK(text(with[0].at("ids")) == "[1448, 15]");
  CHECK(with[0].at("logprob").as_double() < with[1].at("logprob").as_double());
  const test::TempDir folder;
  std::filesystem::copy(demo(), folder / "m");
  std::filesystem::remove(folder / "m/tokenizer.json");
  const auto without = [&](const std::string& record) {
    const test::CliResult result = test::run_cli({"run", "m", "-", "--json", "-q"},
                                                 {.folder = folder.path(), .input = record + "\n"});
    CHECK(result.exit_code == 0);
    return Json::parse(result.out, "stdout");
  };
  const Json bare = without(input).at("continuations");
  CHECK_FALSE(bare[0].has("text"));
  CHECK(bare[0].at("logprob").as_double() == with[0].at("logprob").as_double());
  const Json token = without(R"({"input_ids": [61, 5], "max_tokens": 1, "logprobs": 1})")
                         .at("logprobs")
                         .at("content")[0];
  CHECK_FALSE(token.has("token"));
  CHECK_FALSE(token.at("top_logprobs")[0].has("bytes"));
  const test::CliResult stop =
      test::run_cli({"run", "m", "-", "--json", "--stop", "a"}, {.folder = folder.path()});
  CHECK(stop.exit_code == 3);
  CHECK(stop.err.find("--stop: is text, and the model has no tokenizer\nhelp: stop_token_ids of a "
                      "record need none\n") != std::string::npos);
}

TEST_CASE("cli run: without --json, what only JSON can show is refused") {
  const test::CliResult flag = run({kLondon, "--logprobs", "2"});
  CHECK(flag.exit_code == 2);
  CHECK(flag.err == "fp8kv: run: --logprobs requires --json\nhelp: see 'fp8kv run --help'\n");
  const test::CliResult result = run({"-", "-q", "-n", "1"},
                                     "{\"prompt\": \"A cow\", \"logprobs\": 2}\n"
                                     "{\"prompt\": \"A cow\", \"continuations\": [\" a\"]}\n"
                                     "{\"prompt\": \"London is the capital of\"}\n");
  CHECK(result.exit_code == 1);
  CHECK(result.out == "London is the capital of England\n");
  CHECK(result.err ==
        "fp8kv: run: standard input:1: logprobs: is for JSON, and the answers are text\n"
        "help: add --json\n"
        "fp8kv: run: standard input:2: continuations: is for JSON, and the answers are text\n"
        "help: add --json\n"
        "fp8kv: run: 2 of 3 records could not be used\n"
        "help: why is said above, for each\n");
}

TEST_CASE("cli run: a continuation longer than the model's context is refused by name") {
  std::string words;
  for (int i = 0; i < 3000; ++i) words += " cow";
  const test::CliResult result =
      run({"-", "--json", "-q"},
          cat("{\"prompt\": \"A\", \"continuations\": [\" a\", \"", words, "\"]}\n"));
  CHECK(result.exit_code == 1);
  CHECK(result.out.find("standard input:1 has 3001 tokens with its longest continuation, the "
                        "model's context is ") != std::string::npos);
}

}  // namespace
}  // namespace fp8kv
