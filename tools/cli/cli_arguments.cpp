#include "cli/cli_arguments.h"

#include <algorithm>

#include <CLI/CLI.hpp>

#include "base/text.h"
#include "cli/cli_usage.h"
#include "cli/foreign_flags.h"

namespace fp8kv {
namespace {

const CLI::App* find_command(const CLI::App& app, const std::vector<std::string>& arguments) {
  for (const CLI::App* each : app.get_subcommands({})) {
    if (!arguments.empty() && each->get_name() == arguments[0]) return each;
  }
  return nullptr;
}

// Rewrites `fp8kv help run` to `fp8kv run --help`, and `fp8kv --version` to `fp8kv version`.
void turn_words_into_flags(const CLI::App& app, std::vector<std::string>& arguments) {
  if (arguments.empty()) return;
  if (arguments[0] == "--version" || arguments[0] == "-V") arguments[0] = "version";
  if (arguments[0] != "help") return;
  arguments.erase(arguments.begin());
  arguments.resize(std::min<size_t>(arguments.size(), 1));
  if (arguments.empty() || find_command(app, arguments)) arguments.emplace_back("--help");
}

bool takes_value(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

// Replaces other spellings of the flag. Returns whether the next argument is its value. Throws for
// an unknown flag.
bool check_long_flag(const CLI::App& command, const std::vector<std::string>& usable,
                     std::string& argument) {
  const size_t equals = std::min(argument.find('='), argument.size());
  std::string name = argument.substr(0, equals);
  const CLI::Option* option = command.get_option_no_throw(name);
  if (option == nullptr) {
    std::replace(name.begin(), name.end(), '_', '-');
    option = command.get_option_no_throw(name);
    if (option == nullptr) {
      name = same_flag_here(name, usable);
      option = name.empty() ? nullptr : command.get_option_no_throw(name);
    }
    if (option == nullptr) fail_unknown_flag(command, argument, usable);
    argument.replace(0, equals, name);
    return argument.size() == name.size() && takes_value(*option);
  }
  return equals == argument.size() && takes_value(*option);
}

// Does the same for "-n", "-n5" and "-qv". Refuses "-ngl", which CLI11 could read as "-n gl".
bool check_short_flags(const CLI::App& command, const std::vector<std::string>& usable,
                       std::string& argument) {
  if (const std::string ours = same_flag_here(argument, usable); !ours.empty()) {
    argument = ours;
    return takes_value(*command.get_option(ours));
  }
  if (is_flag_of_others(argument)) fail_unknown_flag(command, argument, usable);
  for (size_t i = 1; i < argument.size(); ++i) {
    const CLI::Option* option = command.get_option_no_throw(cat("-", argument[i]));
    if (option == nullptr) fail_unknown_flag(command, argument, usable);
    if (takes_value(*option)) return i + 1 == argument.size();
  }
  return false;
}

}  // namespace

std::vector<std::string> read_arguments(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  turn_words_into_flags(app, arguments);
  const CLI::App* command = find_command(app, arguments);
  if (command == nullptr) return arguments;
  const std::vector<std::string> usable = usable_flags(*command, arguments);
  for (size_t i = 1; i < arguments.size(); ++i) {
    std::string& argument = arguments[i];
    if (argument == "--") break;
    if (argument.size() < 2 || argument[0] != '-') continue;
    const bool is_long = argument[1] == '-';
    const bool value_follows = is_long ? check_long_flag(*command, usable, argument)
                                       : check_short_flags(*command, usable, argument);
    if (value_follows) ++i;
  }
  return arguments;
}

}  // namespace fp8kv
