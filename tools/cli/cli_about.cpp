#include "cli/cli_about.h"

#include <CLI/CLI.hpp>

#include "about/command_table.h"
#include "about/completions.h"
#include "about/help.h"
#include "about/man_page.h"
#include "about/version.h"
#include "base/error.h"
#include "cli/flags/cli_checks.h"
#include "cli/flags/cli_flags.h"
#include "options/kv_dtype.h"
#include "policy/policies.h"

namespace fp8kv {
namespace {

constexpr const char* kCompletions = "completions";
constexpr const char* kMan = "man";
constexpr const char* kVersion = "version";
constexpr const char* kWord = "word";
constexpr const char* kJson = "--json";

std::vector<std::string> visible_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (!is_hidden(*command)) names.push_back(command->get_name());
  }
  return names;
}

// Names of policies that can be typed as they are, with a sample parameter where one is required.
std::vector<std::string> policy_words() {
  std::vector<std::string> words;
  for (const PolicyKind& kind : policy_kinds()) {
    words.push_back(kind.parameter == PolicyParameter::percent ? "p99.99" : kind.name);
  }
  return words;
}

CommandTable table_of(const CLI::App& app) {
  return command_table(app, {{"COMMAND", visible_commands(app)},
                             {"DTYPE", kv_dtype_names()},
                             {"POLICY", policy_words()}});
}

CLI::App& add_hidden(CLI::App& app, const std::string& name, const std::string& summary) {
  CLI::App* command = app.add_subcommand(name, summary);
  hide(*command);
  return *command;
}

std::string page_of(const CommandTable& table, const std::string& command) {
  for (const CommandRow& row : table.commands) {
    if (row.name == command) return command_page(row);
  }
  return program_page(table);
}

}  // namespace

void add_about(CLI::App& app) {
  const std::vector<std::string> commands = visible_commands(app);
  CLI::App& completions =
      add_hidden(app, kCompletions, "Print the script by which a shell completes fp8kv's commands");
  set_examples(completions,
               {"fp8kv completions bash > ~/.local/share/bash-completion/completions/fp8kv",
                "source <(fp8kv completions zsh)"});
  choice(completions.add_option(kWord, "The shell"), completion_shells())->required();
  CLI::App& man = add_hidden(app, kMan, "Print a manual page, of the program or of a command");
  set_examples(man, {"fp8kv man calibrate | man -l -"});
  man.add_option(kWord, "The command")->transform(one_of(commands))->type_name("COMMAND");
  CLI::App& version =
      add_hidden(app, kVersion, "Print the version, how it was built, and with which libraries");
  set_examples(version, {"fp8kv version --json"});
  version.add_flag_callback(
      kJson, [] {}, "Print the result as JSON");
  // Never runs: read_arguments turns it into --help. Completions and manual pages need its row.
  add_hidden(app, "help", "Print the help of a command")
      .add_option(kWord, "The command")
      ->type_name("COMMAND");
}

std::optional<std::string> text_about(const CLI::App& app) {
  const CLI::App* chosen = app.get_subcommands()[0];
  if (!is_hidden(*chosen)) return std::nullopt;
  if (chosen->get_name() == kVersion) {
    return chosen->get_option(kJson)->count() > 0 ? version_json() : version_text();
  }
  const CLI::Option* word = chosen->get_option(kWord);
  const std::string given = word->count() == 0 ? "" : word->as<std::string>();
  if (chosen->get_name() == kCompletions) return completions(table_of(app), given);
  return page_of(table_of(app), given);
}

}  // namespace fp8kv
