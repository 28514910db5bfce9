// What is said about a command line that cannot be carried out as written.
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

// Throws the usage Error: the flag, what was found, what is allowed, and the help to look at.
[[noreturn]] void fail_usage(const CLI::App& app, const CLI::ParseError& error);

// The same for a flag that `command` has not, with the one that may have been meant.
[[noreturn]] void fail_unknown_flag(const CLI::App& app, const CLI::App& command,
                                    const std::string& given);

}  // namespace fp8kv
