// Runs the built program and gives back everything it said.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace fp8kv::test {

struct CliResult {
  int exit_code = -1;
  std::string out;
  std::string err;
};

// Runs `fp8kv` with these arguments (no shell) in `folder`, with `input` on its standard input.
CliResult run_cli(const std::vector<std::string>& arguments, const std::filesystem::path& folder,
                  const std::string& input = "");

// Starts it, sends `signal_number` after `after_ms`, and gives the result.
CliResult run_cli_and_signal(const std::vector<std::string>& arguments,
                             const std::filesystem::path& folder, int after_ms, int signal_number);

}  // namespace fp8kv::test
