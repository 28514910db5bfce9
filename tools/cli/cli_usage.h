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

// Leaves out flags that need another one which is not among `arguments`, as --items needs --task.
std::vector<std::string> usable_flags(const CLI::App& command,
                                      const std::vector<std::string>& arguments);

// Throws the usage Error with the flag, the value found, the values allowed, and the help to read.
[[noreturn]] void fail_usage(const CLI::App& app, const CLI::ParseError& error);

// Throws the usage Error for a flag that `command` does not have, with the flag that was probably
// meant. Another tool's flag stands for one of `usable`.
[[noreturn]] void fail_unknown_flag(const CLI::App& command, const std::string& given,
                                    const std::vector<std::string>& usable);

}  // namespace fp8kv
