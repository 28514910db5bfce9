#include "cli/cli_usage.h"

#include <algorithm>

#include <CLI/CLI.hpp>

#include "about/help.h"
#include "base/error.h"
#include "cli/cli_brackets.h"
#include "cli/foreign_flags.h"

namespace fp8kv {
namespace {

std::vector<std::string> command_names(const CLI::App& app, bool with_hidden = false) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (with_hidden || !is_hidden(*command)) names.push_back(command->get_name());
  }
  return names;
}

// " (did you mean '--max-new-tokens'?)". Looks for a flag that moved to another command, then for
// another tool's name, with or without a flag here, then for similar letters.
std::string meant_flag(const CLI::App& command, const std::string& given,
                       const std::vector<std::string>& usable) {
  const std::vector<std::string> known = flag_names(command);
  const std::string command_now = moved_to(command.get_name(), given);
  if (!command_now.empty()) return cat(": it is now 'fp8kv ", command_now, " PATH'");
  const std::string ours = flag_of_others(given, usable);
  if (!ours.empty()) return cat(" (did you mean ", quote(ours), "?)");
  if (const std::string why = why_needless(given); !why.empty()) return "; " + why;
  const bool takes_model = command.get_option_no_throw("model") != nullptr;
  if (takes_model && names_model(given)) return "; the model goes without a flag";
  const std::string by_letters = did_you_mean(given, known);
  const std::string near = by_letters.empty() ? flag_near_others(given, usable) : "";
  return near.empty() ? by_letters : cat(" (did you mean ", quote(near), "?)");
}

std::string unknown_flag(const CLI::App& command, const std::string& called,
                         const std::string& given, const std::vector<std::string>& usable) {
  const std::string name = given.substr(0, given.find('='));
  return cat(quote(name), " is not a flag of ", called, meant_flag(command, name, usable));
}

std::string unknown_argument(const CLI::App& app, const CLI::App* command,
                             const std::string& given) {
  if (given.size() > 1 && given[0] == '-') {
    const CLI::App& asked = command == nullptr ? app : *command;
    const std::string called = command == nullptr ? "fp8kv itself" : command->get_name();
    return unknown_flag(asked, called, given, flag_names(asked));
  }
  if (command != nullptr) return cat(quote(given), " is not expected here");
  return cat(quote(given), " is not a command", did_you_mean(given, command_names(app, true)),
             "; commands are: ", join(command_names(app)));
}

// All missing arguments in one message.
std::string missing_arguments(const CLI::App& command) {
  std::vector<std::string> missing;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_required() && option->count() == 0) missing.push_back(spelling(*option));
  }
  return missing.empty() ? "" : join(missing) + (missing.size() == 1 ? " is" : " are") + " missing";
}

std::string excluded_pair(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0) continue;
    for (const CLI::Option* other : option->get_excludes()) {
      if (other->count() == 0) continue;
      const auto name = [](const CLI::Option& of) {
        return of.nonpositional() ? of.get_name() : spelling(of);
      };
      return cat(name(*option), " and ", name(*other), " cannot be given together");
    }
  }
  return "";
}

// The option that CLI11's message is about.
const CLI::Option* subject(const CLI::App& command, const std::string& said) {
  for (const CLI::Option* option : command.get_options()) {
    if (static_cast<int>(option->count()) > std::max(1, option->get_items_expected_max()) ||
        said.starts_with(option->get_name() + ":")) {
      return option;
    }
  }
  return nullptr;
}

// The message for a wrong number of values: none, or more than one.
std::string wrong_count(const CLI::App& command, const std::string& said) {
  const CLI::Option* option = subject(command, said);
  if (option == nullptr) return "";
  if (option->count() > 1) return cat(option->get_name(), " is given ", option->count(), " times");
  return cat(option->get_name(), " needs a value: ", spelling(*option));
}

// The message of our own validator after the flag's name. The name that CLI11 gives a positional
// argument is left out: nobody typed it.
std::string refused_value(const CLI::App& command, const std::string& said) {
  const CLI::Option* option = subject(command, said);
  if (option == nullptr || option->nonpositional()) return said;
  return said.substr(option->get_name().size() + 2);
}

// The message for a value that only CLI11 checked: the value of a switch, like --json=maybe.
std::string unreadable_value(const CLI::App& command, const std::string& said) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_items_expected_max() != 0 || option->count() == 0) continue;
    const std::string name = option->get_name();
    if (said.find(name + " ") != said.npos) return name + " takes no value";
  }
  return "";
}

// Makes the message from the parser's state where that says more than CLI11's text.
std::string message_of(const CLI::App& app, const CLI::App* command, const CLI::ParseError& error) {
  const std::vector<std::string> unknown = app.remaining(true);
  const bool about_arguments = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr ||
                               dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  if (about_arguments && !unknown.empty())
    return unknown_argument(app, command, unmarked(unknown[0]));
  std::string message;
  if (command == nullptr) {
    message = cat("no command given; commands are: ", join(command_names(app)));
  } else if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    message = missing_arguments(*command);
  } else if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr) {
    message = excluded_pair(*command);
  } else if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    message = wrong_count(*command, error.what());
  } else if (dynamic_cast<const CLI::ValidationError*>(&error) != nullptr) {
    message = refused_value(*command, error.what());
  } else if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) {
    message = unreadable_value(*command, error.what());
  }
  return message.empty() ? error.what() : message;
}

[[noreturn]] void fail_about(const CLI::App* command, const std::string& message) {
  const std::string name = command == nullptr ? "" : command->get_name();
  throw Error((name.empty() ? "" : name + ": ") + message,
              cat("see 'fp8kv ", name, name.empty() ? "" : " ", "--help'"), ErrorKind::usage);
}

}  // namespace

std::vector<std::string> flag_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> usable_flags(const CLI::App& command,
                                      const std::vector<std::string>& arguments) {
  const auto is_given = [&](const CLI::Option* needed) {
    return std::any_of(arguments.begin(), arguments.end(), [&](const std::string& argument) {
      return needed->check_name(argument.substr(0, argument.find('=')));
    });
  };
  std::vector<std::string> usable = flag_names(command);
  std::erase_if(usable, [&](const std::string& name) {
    const auto needs = command.get_option(name)->get_needs();
    return !std::all_of(needs.begin(), needs.end(), is_given);
  });
  return usable;
}

void fail_usage(const CLI::App& app, const CLI::ParseError& error) {
  const auto chosen = app.get_subcommands();
  const CLI::App* command = chosen.empty() ? nullptr : chosen[0];
  fail_about(command, message_of(app, command, error));
}

void fail_unknown_flag(const CLI::App& command, const std::string& given,
                       const std::vector<std::string>& usable) {
  fail_about(&command, unknown_flag(command, command.get_name(), given, usable));
}

}  // namespace fp8kv
