// Runs the built program without a shell, and returns everything that it printed.
#pragma once

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace fp8kv::test {

struct CliResult {
  int exit_code = -1;  // 128 + the signal's number after a signal
  std::string out;
  std::string err;
  // Peak memory including file pages. At least the memory of the test itself at the start of the
  // run.
  int64_t peak_bytes = 0;
};

struct CliSetup {
  std::filesystem::path folder = ".";         // the program's working folder
  std::filesystem::path program = {};         // "": the built program
  std::string input = {};                     // the contents of standard input
  std::filesystem::path input_file = {};      // a file as standard input, instead of `input`
  std::filesystem::path out = {};             // a file for standard output; "": CliResult::out
  bool reader_gone = false;                   // standard output is a pipe without a reader
  std::vector<std::string> environment = {};  // NAME=VALUE, added to the test's own
  uint64_t largest_file = 0;                  // bytes: writing more fails; 0: no limit
  // If set, is called every millisecond with the output so far. When it returns true, the program
  // gets `signal_number`. Standard input ends only after that.
  std::function<bool(const CliResult&)> interrupt_when = {};
  int signal_number = SIGINT;
};

CliResult run_cli(const std::vector<std::string>& arguments, const CliSetup& setup = {});

inline CliResult run_cli(const std::vector<std::string>& arguments,
                         const std::filesystem::path& folder) {
  return run_cli(arguments, CliSetup{.folder = folder});
}

// The lines of `err` that are the same on all machines: without device, speed and progress.
std::string lasting_lines(const std::string& err);

// Removes the hexadecimal digits after each `mark`: digests and process ids.
std::string without_hex_after(const std::string& text, const std::string& mark);

}  // namespace fp8kv::test
