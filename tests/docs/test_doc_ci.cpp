// Runs the commands of the job files in docs/ci.md unchanged, on the demo model.
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "docs/markdown.h"
#include "support/places.h"
#include "support/program/run_cli.h"
#include "support/temp_dir.h"

using namespace fp8kv;

namespace {

// The lines that call the program, without the text before the call.
std::vector<std::string> commands_in(const std::string& text) {
  std::vector<std::string> commands;
  for (const std::string& line : test::lines_of(text)) {
    const size_t at = line.find("fp8kv ");
    const std::string before = at == line.npos ? "x" : line.substr(0, at);
    if (before.find_first_not_of(" -") == before.npos || before.ends_with("run: ")) {
      commands.push_back(line.substr(at));
    }
  }
  return commands;
}

std::vector<std::string> steps_in(const std::string& file) {
  return commands_in(test::read_file(test::source_dir() / file));
}

}  // namespace

TEST_CASE("docs: the jobs of ci calibrate, gate, inject and verify, with the same commands") {
  const std::vector<std::string> github = steps_in("scripts/ci/github.yml");
  CHECK(github.size() == 4);
  CHECK(steps_in("scripts/ci/gitlab.yml") == github);
  const std::vector<std::string> page = steps_in("docs/ci.md");
  REQUIRE(page.size() >= 4);
  CHECK(std::vector<std::string>(page.begin(), page.begin() + 4) == github);
}

TEST_CASE("docs: the commands of the jobs of ci work, and leave what the jobs keep") {
  const test::TempDir temp;
  std::string script = cat("PATH='", test::built_program().parent_path().string(), "':$PATH\n");
  for (const std::string& line : steps_in("scripts/ci/gitlab.yml")) script += line + "\n";
  const std::string text = (test::source_dir() / "datasets/calibration.txt").string();
  // A shortened text is enough for these checks.
  temp.write("text.txt", test::read_file(text).substr(0, 20000));
  const test::CliResult result = test::run_cli(
      {"-euc", script},
      {.folder = temp.path(),
       .program = "/bin/bash",
       .environment = {"MODEL=" + (test::source_dir() / "datasets/demo").string(),
                       "CALIBRATE_ON=text.txt", "EVALUATE_ON=text.txt", "OUT=model-kv"}});
  CAPTURE(result.err);
  CHECK(result.exit_code == 0);
  for (const char* file : {"kv_cache_scales.json", "eval.xml", "eval.md", "eval.html", "verify.xml",
                           "verify.md", "model-kv/config.json"}) {
    CAPTURE(file);
    CHECK(std::filesystem::exists(temp / file));
  }
}
