// Compares the command line in README and docs with the program itself.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <doctest/doctest.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/foreign_flags.h"
#include "docs/markdown.h"
#include "eval/metrics.h"
#include "support/program/program_help.h"
#include "support/program/run_cli.h"

using namespace fp8kv;
using test::Cells;
using test::code;
using test::flags_of;
using test::Help;
using test::lines_of;
using test::words_of;

namespace {

// Removes the simulator, which only some builds have.
std::string without_simulator(std::string text) {
  const size_t at = text.find("|hip|sim");
  return at == text.npos ? text : text.erase(at + 4, 4);
}

bool is_common(const Cells& row) {
  return std::all_of(test::commands().begin(), test::commands().end(), [&](const auto& command) {
    const auto& rows = command.second.arguments;
    return std::find(rows.begin(), rows.end(), row) != rows.end();
  });
}

Cells table_row(const Cells& row) {
  return {code(without_simulator(row[0])), row[1]};
}

const Help* find_command(const std::string& name) {
  for (const auto& [command, help] : test::commands()) {
    if (command == name) return &help;
  }
  return nullptr;
}

// A call of the program in a piece of code, with its flags. call_in returns nullopt for other code.
struct Call {
  std::string command;
  std::vector<std::string> flags;
};
std::optional<Call> call_in(const std::string& piece) {
  std::vector<std::string> words = words_of(piece);
  const auto program = std::find(words.begin(), words.end(), "fp8kv");
  if (program != words.end()) words.erase(words.begin(), program + 1);
  if (words.empty()) return std::nullopt;
  if (!find_command(words[0])) return std::nullopt;
  Call call{words[0], {}};
  for (const std::string& word : words) {
    if (word == "|" || word == "&&" || word == ";") break;
    if (word.starts_with("--") && word.size() > 2) {
      call.flags.push_back(word.substr(0, word.find_first_of("=,.;)'\"")));
    }
  }
  return call;
}

}  // namespace

TEST_CASE("docs: commands has every command with all of its flags") {
  const std::string text = test::page_text("docs/commands.md");
  std::vector<Cells> common;
  for (const Cells& row : test::commands()[0].second.arguments) {
    if (is_common(row)) common.push_back(table_row(row));
  }
  CHECK(common.size() >= 4);
  test::check_table("docs/commands.md", {"argument or flag", "what it does"}, common);
  for (const auto& [name, help] : test::commands()) {
    const std::string section =
        cat("\n## ", name, "\n\n", help.summary, ".\n\n```\n", help.usage, "\n```\n");
    CAPTURE(section);
    CHECK(text.find(section) != text.npos);
    std::vector<Cells> rows;
    for (const Cells& row : help.arguments) {
      if (!is_common(row)) rows.push_back(table_row(row));
    }
    if (rows.empty()) continue;
    test::check_table("docs/commands.md", {"argument or flag", "what it does"}, rows);
  }
}

TEST_CASE("docs: README names every command, in the program's order") {
  std::string listed, known;
  for (const std::string& cell : test::first_column("README.md", {"command", "what it does"})) {
    listed += words_of(cell)[0] + "\n";
  }
  for (const auto& [name, help] : test::commands()) known += name + "\n";
  CHECK(listed == known);
}

TEST_CASE("docs: every flag of a command on any page is one that the program knows") {
  size_t checked = 0;
  for (const std::string& page : test::pages()) {
    for (const std::string& piece : test::code_on(page)) {
      const std::optional<Call> call = call_in(piece);
      if (!call) continue;
      const std::set<std::string> known = flags_of(*find_command(call->command));
      for (const std::string& flag : call->flags) {
        CAPTURE(page);
        CAPTURE(piece);
        CAPTURE(flag);
        CHECK(known.contains(flag));
        ++checked;
      }
    }
  }
  CHECK(checked > 30);
}

TEST_CASE("docs: commands lists the flags of other tools that are taken") {
  std::set<std::pair<std::string, std::string>> listed;
  bool inside = false;
  for (const std::string& line : lines_of(test::page_text("docs/commands.md"))) {
    if (line.starts_with("## ")) inside = line == "## Flags of other tools";
    if (!inside || !line.starts_with("| `")) continue;
    const std::vector<std::string> words = words_of(line);
    std::vector<std::string> names;
    for (const std::string& word : words) {
      if (word[0] == '`') names.push_back(word.substr(1, word.find('`', 1) - 1));
    }
    REQUIRE(names.size() >= 2);
    for (size_t i = 0; i + 1 < names.size(); ++i) listed.emplace(names[i], names.back());
  }
  const auto taken = same_flags();
  CHECK(listed == std::set<std::pair<std::string, std::string>>(taken.begin(), taken.end()));
}

TEST_CASE("docs: commands lists every name of --kv-cache-dtype") {
  const Help* run = find_command("run");
  REQUIRE(run != nullptr);
  std::string text;
  for (const Cells& row : run->arguments) {
    if (row[0].starts_with("--kv-cache-dtype ")) text = row[1];
  }
  const std::string first = "What the cache holds: ";
  REQUIRE(text.starts_with(first));
  std::set<std::string> known, listed;
  std::string words = text.substr(first.size(), text.find(" [") - first.size());
  std::replace(words.begin(), words.end(), ',', ' ');
  for (const std::string& word : words_of(words)) {
    if (word != "or") known.insert(word);
  }
  for (const std::string& line : lines_of(test::page_text("docs/commands.md"))) {
    const bool of_table = std::any_of(known.begin(), known.end(), [&](const std::string& name) {
      return line.starts_with("| `" + name + "`");
    });
    if (!of_table) continue;
    for (const std::string& word : words_of(line)) {
      if (word.size() > 2 && word[0] == '`') {
        listed.insert(word.substr(1, word.find('`', 1) - 1));
      }
    }
  }
  for (const std::string& name : known) {
    CAPTURE(name);
    CHECK(listed.contains(name));
  }
}

TEST_CASE("docs: the help of eval has every metric with unit, direction and meaning") {
  std::string help;
  for (const std::string& line : lines_of(test::run_cli({"eval", "--help"}).out)) {
    test::add_text(help, test::stripped(line));
  }
  for (const Metric& metric : metrics()) {
    CAPTURE(metric.name);
    const std::string text =
        cat(metric.unit, ", ", better_name(metric.better), " is better: ", metric.summary);
    const size_t at = help.find(cat(" ", metric.name, "  "));
    REQUIRE(at != help.npos);
    CHECK(test::stripped(help.substr(at + metric.name.size() + 1)).starts_with(text));
  }
}

TEST_CASE("docs: commands lists the exit codes") {
  std::string codes = "0\n";
  for (const ErrorKind kind : {ErrorKind::check, ErrorKind::usage, ErrorKind::input,
                               ErrorKind::device, ErrorKind::resource, ErrorKind::interrupted}) {
    codes += cat(static_cast<int>(kind), "\n");
  }
  std::string listed;
  for (const std::string& cell : test::first_column("docs/commands.md", {"code", "meaning"})) {
    listed += cell + "\n";
  }
  CHECK(listed == codes);
}
