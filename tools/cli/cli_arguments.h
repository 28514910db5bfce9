// Prepares the command line for CLI11: rewrites or refuses arguments that CLI11 would misread.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace fp8kv {

// The arguments after the program's name, rewritten: `help` and `help COMMAND` become --help,
// --version becomes the command `version`. Underscores in a flag's name become dashes. Another
// tool's flag becomes ours if both mean the same.
// Throws a usage Error for a flag that the command does not have. CLI11 would take the flag's value
// for an argument, and complain about that.
std::vector<std::string> read_arguments(const CLI::App& app, int argc, char** argv);

}  // namespace fp8kv
