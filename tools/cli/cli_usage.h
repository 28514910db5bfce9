// Messages about a command line that cannot be carried out as written.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace fp8kv {

// "--kv-cache-dtype", "--out": the long flags of `command`.
std::vector<std::string> flag_names(const CLI::App& command);

// Throws the usage Error with the flag, the value found, the values allowed, and the help to read.
[[noreturn]] void fail_usage(const CLI::App& app, const CLI::ParseError& error);

// Throws the usage Error for a flag that `command` does not have, with the flag that was probably
// meant.
[[noreturn]] void fail_unknown_flag(const CLI::App& app, const CLI::App& command,
                                    const std::string& given);

}  // namespace fp8kv
