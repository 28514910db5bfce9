// `fp8kv eval --task --report`: the page as a browser receives it.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "support/markup.h"
#include "support/places.h"
#include "support/program/run_cli.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

// A file with a hostile name, prompts and choices. Both caches are float32, so their answers are
// equal on every processor.
struct TaskPageWorld {
  test::TempDir folder;
  std::string items = "choices=a<b>.jsonl";

  TaskPageWorld() {
    folder.write("a<b>.jsonl",
                 R"({"prompt": "<script>x()</script>\u0001", "choices": ["a", "b"], "answer": 0})"
                 "\n"
                 R"({"prompt": "London is", "choices": ["the", "</pre>\u001b"], "answer": "the"})"
                 "\n");
    folder.write("prompts.jsonl", R"({"prompt": "Chapter 1", "pattern": "(?s).", "max_tokens": 3})"
                                  "\n");
  }

  test::CliResult ask(const std::vector<std::string>& more,
                      const std::string& seconds = "1709164800") const {
    std::vector<std::string> arguments = {"eval",
                                          (test::source_dir() / "datasets/demo").string(),
                                          "--unit-scales",
                                          "-q",
                                          "--baseline",
                                          "float32",
                                          "--kv-cache-dtype",
                                          "float32",
                                          "--task",
                                          items,
                                          "--task",
                                          "generate=prompts.jsonl"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return test::run_cli(
        arguments, {.folder = folder.path(), .environment = {"SOURCE_DATE_EPOCH=" + seconds}});
  }
};

}  // namespace

TEST_CASE("cli eval tasks page: one page that is well formed, escaped and asks for nothing") {
  const TaskPageWorld world;
  const test::CliResult result = world.ask({"--report", "page.html"});
  CHECK(result.err == "");
  CHECK(result.exit_code == 0);
  CHECK(result.out == world.ask({}).out);
  const std::string html = test::read_file(world.folder / "page.html");
  CHECK(html.starts_with("<!DOCTYPE html>"));
  CHECK(test::unbalanced(html) == "");
  for (const std::string raw :
       {"http:", "https:", "src=", "url(", "a<b>", "<script>x", "\x01", "\x1b"}) {
    CAPTURE(raw);
    CHECK(html.find(raw) == html.npos);
  }
  for (const std::string said :
       {"<h1>demo</h1>", "2024-02-29, fp8kv ", "choices: a&lt;b&gt;.jsonl",
        "These items do not tell float32 on generate from float32 (p = 1)",
        "Same texts as float32 on generate: ", "float32 1 of 1.",
        "Measured on 2 items of choices and 1 item of generate.",
        "<dt>Scales</dt><dd>1 everywhere</dd>", "prompts.jsonl, ", " bytes, SHA-256 "}) {
    CAPTURE(said);
    CHECK(html.find(said) != html.npos);
  }
}

TEST_CASE("cli eval tasks page: the same run gives the same bytes, and nothing is overwritten") {
  const TaskPageWorld world;
  REQUIRE(world.ask({"--report", "one.html"}).exit_code == 0);
  REQUIRE(world.ask({"--report", "two.html"}).exit_code == 0);
  const std::string one = test::read_file(world.folder / "one.html");
  CHECK(one == test::read_file(world.folder / "two.html"));
  const test::CliResult again = world.ask({"--report", "one.html"}, "0");
  CHECK(again.exit_code == 3);
  CHECK(again.err.find("'one.html'") != again.err.npos);
  const test::CliResult input = world.ask({"--report", "prompts.jsonl", "--force"});
  CHECK(input.exit_code != 0);
  CHECK(input.err.find("prompts.jsonl") != input.err.npos);
  CHECK(test::read_file(world.folder / "prompts.jsonl").starts_with("{"));
  CHECK(test::read_file(world.folder / "one.html") == one);
  REQUIRE(world.ask({"--report", "one.html", "--force"}, "0").exit_code == 0);
  CHECK(test::read_file(world.folder / "one.html").find("1970-01-01") != one.npos);
}

TEST_CASE("cli eval tasks page: a cache that is not accepted has a page too") {
  const TaskPageWorld world;
  const test::CliResult result =
      world.ask({"--report", "page.html", "--accept", "recovery >= 99%"});
  CHECK(result.exit_code == 4);
  const std::string html = test::read_file(world.folder / "page.html");
  CHECK(html.find("Recovery of at least 99&nbsp;%, with 95&nbsp;% confidence: not decided float32 "
                  "on choices after 2 items and float32 on generate after 1 item.") != html.npos);
  CHECK(html.find("bound 99 %") != html.npos);
}

}  // namespace fp8kv
