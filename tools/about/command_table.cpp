#include "about/command_table.h"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string_view>

#include <CLI/CLI.hpp>

#include "about/help.h"

namespace fp8kv {
namespace {

// Names of values that are files or folders.
constexpr std::string_view kPaths[] = {"A",     "B",    "CHECKPOINT", "FILE", "FILE...", "FOLDER",
                                       "MODEL", "NAME", "OUT",        "PATH", "PYTHON"};

// The words of a metavar such as "N|auto". Leaves out "N", which stands for a number.
std::vector<std::string> words_between_bars(const std::string& metavar) {
  std::istringstream in(metavar);
  std::vector<std::string> words;
  for (std::string word; std::getline(in, word, '|');) {
    if (word != "N") words.push_back(word);
  }
  return words;
}

void set_value(ArgumentRow& row, const std::vector<ValueWords>& known) {
  constexpr std::string_view kMore = ",...";
  if (row.metavar.find('|') != row.metavar.npos) {
    row.kind = ValueKind::words;
    row.words = words_between_bars(row.metavar);
    return;
  }
  const bool is_list = row.metavar.ends_with(kMore);
  const std::string one = row.metavar.substr(0, row.metavar.size() - (is_list ? kMore.size() : 0));
  for (const ValueWords& each : known) {
    if (each.metavar != one) continue;
    row.kind = is_list ? ValueKind::list : ValueKind::words;
    row.words = each.words;
    return;
  }
  const bool is_path = std::find(std::begin(kPaths), std::end(kPaths), one) != std::end(kPaths);
  row.kind = is_path ? ValueKind::path : ValueKind::other;
}

ArgumentRow row_of(const CLI::Option& option, const std::vector<ValueWords>& known) {
  ArgumentRow row;
  row.text = option_text(option);
  if (option.nonpositional()) {
    if (!option.get_snames().empty()) row.short_name = "-" + option.get_snames()[0];
    if (!option.get_lnames().empty()) row.long_name = "--" + option.get_lnames()[0];
  }
  if (option.get_items_expected_max() == 0) return row;
  row.metavar = option.get_type_name();
  row.repeats = option.get_items_expected_max() > 1;
  set_value(row, known);
  return row;
}

CommandRow command_row(const CLI::App& app, const std::vector<ValueWords>& known) {
  CommandRow command{.name = app.get_name(),
                     .summary = app.get_description(),
                     .usage = usage_line(app),
                     .arguments = {},
                     .flags = {},
                     .footer = app.get_footer(),
                     .hidden = is_hidden(app)};
  for (const CLI::Option* option : app.get_options()) {
    if (option == app.get_help_ptr()) continue;
    (option->nonpositional() ? command.flags : command.arguments).push_back(row_of(*option, known));
  }
  ArgumentRow help = row_of(*app.get_help_ptr(), known);
  help.text = kHelpText;
  command.flags.push_back(help);
  return command;
}

}  // namespace

CommandTable command_table(const CLI::App& app, const std::vector<ValueWords>& known) {
  CommandTable table{command_row(app, known), {}};
  for (const CLI::App* command : app.get_subcommands({})) {
    table.commands.push_back(command_row(*command, known));
  }
  return table;
}

}  // namespace fp8kv
