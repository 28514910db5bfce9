#include "cli/cli_brackets.h"

#include <algorithm>

#include <CLI/CLI.hpp>

namespace fp8kv {
namespace {

constexpr char kMark = '\x1f';

}  // namespace

std::vector<std::string> marked(std::vector<std::string> arguments) {
  std::reverse(arguments.begin(), arguments.end());
  for (std::string& argument : arguments) {
    // An argument that already ends in the mark gets one more.
    if (argument.ends_with(']') || argument.ends_with(kMark)) argument += kMark;
  }
  return arguments;
}

std::string unmarked(std::string argument) {
  if (argument.ends_with(kMark)) argument.pop_back();
  return argument;
}

void take_off_marks(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands({})) {
    for (CLI::Option* option : command->get_options()) {
      if (option->get_items_expected_max() > 0) option->transform(unmarked);
    }
  }
}

}  // namespace fp8kv
