// The text of --help, made from the flags themselves.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace fp8kv {

// "--data FILE...", "MODEL", "--json": an option as it is typed.
std::string spelling(const CLI::Option& option);

inline constexpr const char* kHelpText = "Print this help";

// The help text of one option, with its default.
std::string option_text(const CLI::Option& option);

// "fp8kv calibrate MODEL --data FILE... [OPTIONS]".
std::string usage_line(const CLI::App& app);

// Leaves `command` out of the list of commands. Commands that print about the program are hidden.
void hide(CLI::App& command);
bool is_hidden(const CLI::App& command);

// The help of `app`: usage, description, arguments, options and footer (see `set_examples`). For
// the program itself also its commands.
std::string help_text(const CLI::App& app);

// Command lines to copy, shown at the end of the help of `app`.
void set_examples(CLI::App& app, const std::vector<std::string>& lines);

// Adds a table of names and descriptions before the examples. REQUIRES set_examples before it.
void add_help_table(CLI::App& app, const std::string& title,
                    const std::vector<std::pair<std::string, std::string>>& rows);

}  // namespace fp8kv
