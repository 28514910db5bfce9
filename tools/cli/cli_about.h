// Commands that print about the program itself: its version, completions of shells,
// manual pages.
#pragma once

#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace fp8kv {

// Adds them, hidden from the list of commands. After all others.
void add_about(CLI::App& app);

// What the chosen one prints; nullopt where another command was chosen. REQUIRES that `app` has
// parsed a command line.
std::optional<std::string> text_about(const CLI::App& app);

}  // namespace fp8kv
