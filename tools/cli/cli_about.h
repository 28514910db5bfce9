// Commands that print about the program itself: version, shell completions and manual pages.
#pragma once

#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace fp8kv {

// Adds these commands, hidden from the list of commands. Call it after all others are added.
void add_about(CLI::App& app);

// The text that the chosen command prints, or nullopt for any other command. REQUIRES that `app`
// has parsed a command line.
std::optional<std::string> text_about(const CLI::App& app);

}  // namespace fp8kv
