// The command line: every flag of every command. Only this folder knows how flags are spelled.
#pragma once

#include <optional>
#include <string>

#include "options/options.h"

namespace fp8kv {

struct ParsedCommand {
  std::string name;  // "calibrate"
  Options options;
};

// Returns nullopt if help or the version was asked for, and has been printed. Throws a usage Error
// for a command line that it cannot read.
std::optional<ParsedCommand> parse_command_line(int argc, char** argv);

}  // namespace fp8kv
