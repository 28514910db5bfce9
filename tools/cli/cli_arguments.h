// The command line as the library is to read it: what it would take for something else is put right
// here, or refused.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace fp8kv {

// The arguments after the program's name. `help`, `help COMMAND` and `version` become the flags of
// those names, underscores in the name of a flag dashes, and another tool's name of a flag ours
// where the two mean the same. Throws a usage Error for a flag that the command has not, whose
// value the library would read as an argument and blame instead.
std::vector<std::string> read_arguments(const CLI::App& app, int argc, char** argv);

}  // namespace fp8kv
