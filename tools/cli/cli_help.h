// What --help prints, made from the flags themselves.
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

// Usage, description, arguments and options, then the footer (see `set_examples`); for the program
// itself the commands too.
std::string help_text(const CLI::App& app);

// Command lines to copy, shown at the end of the help of `app`.
void set_examples(CLI::App& app, const std::vector<std::string>& lines);

// A table of names and what they are, before the examples. REQUIRES set_examples before it.
void add_help_table(CLI::App& app, const std::string& title,
                    const std::vector<std::pair<std::string, std::string>>& rows);

}  // namespace fp8kv
