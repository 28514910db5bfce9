// What is said about a command line that cannot be carried out as written.
#pragma once

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace fp8kv {

// Throws the usage Error: the flag, what was found, what is allowed, and the help to look at.
[[noreturn]] void fail_usage(const CLI::App& app, const CLI::ParseError& error);

}  // namespace fp8kv
