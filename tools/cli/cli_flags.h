// Flags that several commands have, and kinds of flags.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/options.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace fp8kv {

// Takes any number of values, also where the option is given several times. Read them with
// `results()`.
CLI::Option* add_values(CLI::App& command, const std::string& names, const std::string& text);

// An option that takes one of a few words.
CLI::Option* choice(CLI::Option* option, const std::vector<std::string>& words);

// --json, --quiet and --verbose.
void add_common(CLI::App& command, CommonOptions& options);

// --data, required; read it with `results()`.
CLI::Option* add_data(CLI::App& command);

// --samples, and --seq-len from `least` on.
struct WindowFlags {
  CLI::Option* samples;
  CLI::Option* seq_len;
};
WindowFlags add_windows(CLI::App& command, uint64_t& samples, int64_t& seq_len, int64_t least);

// --device and --threads.
void add_device(CLI::App& command, std::string& device, int& threads);

}  // namespace fp8kv
