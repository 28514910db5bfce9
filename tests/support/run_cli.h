// Runs the built program, without a shell, and gives back everything it said.
#pragma once

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace fp8kv::test {

struct CliResult {
  int exit_code = -1;  // 128 + the signal's number when one ended the program
  std::string out;
  std::string err;
  // The most memory it had, file pages included, or that of the test when it began if that is more.
  int64_t peak_bytes = 0;
};

struct CliSetup {
  std::filesystem::path folder = ".";     // the program's working folder
  std::filesystem::path program = {};     // "": the one that was built
  std::string input = {};                 // what its standard input holds
  std::filesystem::path input_file = {};  // or a file that it is
  std::filesystem::path out = {};         // where its standard output goes; "": to CliResult::out
  bool reader_gone = false;               // standard output is a pipe that nobody reads
  std::vector<std::string> environment = {};  // NAME=VALUE, beside what the test itself has
  uint64_t largest_file = 0;                  // in bytes: a write past it fails; 0: no limit
  // When given, asked every millisecond with what stdout and stderr hold so far; on the first true
  // the program gets `signal_number`. Standard input ends only after that.
  std::function<bool(const CliResult&)> interrupt_when = {};
  int signal_number = SIGINT;
};

CliResult run_cli(const std::vector<std::string>& arguments, const CliSetup& setup = {});

inline CliResult run_cli(const std::vector<std::string>& arguments,
                         const std::filesystem::path& folder) {
  return run_cli(arguments, CliSetup{.folder = folder});
}

// `err` without the lines that differ between machines and runs: the device, the speed, progress.
std::string lasting_lines(const std::string& err);

// `text` without the hexadecimal digits that follow each `mark`: digests and process ids.
std::string without_hex_after(const std::string& text, const std::string& mark);

}  // namespace fp8kv::test
