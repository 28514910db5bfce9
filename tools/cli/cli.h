// The command line: every flag of every command. Nothing else knows how they are spelled.
#pragma once

#include <optional>
#include <string>

#include "options/options.h"

namespace fp8kv {

struct ParsedCommand {
  std::string name;  // "calibrate"
  Options options;
};

// nullopt when help or the version was asked for, and printed. Throws a usage Error otherwise.
std::optional<ParsedCommand> parse_command_line(int argc, char** argv);

}  // namespace fp8kv
