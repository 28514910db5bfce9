// Tables and sentences fit the width of a terminal. Commands to copy stay on one line.
#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/models/tiny_checkpoint.h"
#include "support/program/run_cli.h"
#include "support/program/terminal.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

using Strings = std::vector<std::string>;

constexpr size_t kColumns = 60;

size_t characters(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

size_t longest_word(const std::string& line) {
  size_t longest = 0;
  std::istringstream in(line);
  for (std::string word; in >> word;) longest = std::max(longest, characters(word));
  return longest;
}

bool is_command(const std::string& line) {
  const Strings begins = {"next ", "  fp8kv ", "  vllm ", "  python3 ",
                          "  text-generation-launcher "};
  return std::any_of(begins.begin(), begins.end(),
                     [&](const std::string& begin) { return line.starts_with(begin); });
}

// The output of the command on a terminal with `columns` columns.
std::string shown(const test::TempDir& place, const Strings& command, unsigned short columns) {
  test::Terminal terminal(columns);
  const test::CliResult result = test::run_cli(
      command, {.folder = place.path(), .out = terminal.path, .environment = {"NO_COLOR=1"}});
  INFO(result.err);
  CHECK(result.exit_code == 0);
  return terminal.text();
}

}  // namespace

TEST_CASE("cli: on a terminal every line fits, but for commands and words that nothing breaks") {
  const test::TempDir place;
  test::write_tiny_checkpoint(place / "model", test::tiny_config());
  place.write("data.jsonl", "{\"input_ids\": [1, 5, 9, 33, 7, 12, 60, 2]}\n");
  const std::vector<Strings> commands = {
      {"calibrate", "model", "--data", "data.jsonl", "-o", "scales.json", "-q"},
      {"inspect", "scales.json"},
      {"inspect", "scales.json", "--certificate"},
      {"inspect", "model"},
      {"inject", "model", "-s", "scales.json", "-o", "served", "-q"},
      {"inspect", "served"},
      {"verify", "served", "--runtime", "vllm", "--runtime", "sglang@0.5.19"},
      {"plan", "model", "--memory", "80GiB"},
      {"eval", "model", "--data", "data.jsonl", "--scales", "scales.json", "--greedy-tokens", "2",
       "-q"}};
  for (const Strings& command : commands) {
    std::istringstream lines(shown(place, command, kColumns));
    for (std::string line; std::getline(lines, line);) {
      CAPTURE(command[0]);
      CAPTURE(line);
      const bool fits = characters(line) <= kColumns;
      CHECK((fits || is_command(line) || longest_word(line) > kColumns - 20));
    }
  }
}

TEST_CASE("cli plan: a sentence is made anew for a narrow terminal, and a pipe has it as ever") {
  const test::TempDir place;
  test::write_tiny_checkpoint(place / "model", test::tiny_config());
  const Strings plan = {"plan", "model"};
  CHECK(shown(place, plan, kColumns)
            .ends_with("gain: bytes read in a decode step with a float32 cache over\n"
                       "those with this one; what a step that is bound by memory can\n"
                       "gain in speed.\n"));
  const std::string piped = test::run_cli(plan, place.path()).out;
  CHECK(piped.ends_with(
      "gain: bytes read in a decode step with a float32 cache over those with this one; what a "
      "step that\nis bound by memory can gain in speed.\n"));
  CHECK(shown(place, plan, 200) == piped);
}

}  // namespace fp8kv
