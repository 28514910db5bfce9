// A program run without a shell, with a time limit: its standard input is a text, what it says on
// standard output and standard error is kept for messages, and its answer comes by a descriptor of
// its own. When it ends, or is no longer waited for, all processes of its group are killed.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace fp8kv {

struct ChildCommand {
  std::vector<std::string> words;  // the program, by path or found in PATH, and its arguments
  std::string input;               // all of its standard input
  double time_limit_s = 0;
  std::filesystem::path folder = {};  // its working folder; "": this process's
  // NAME=VALUE: all of its environment; nothing: this process's.
  std::optional<std::vector<std::string>> environment = {};
};

struct ChildResult {
  bool timed_out = false;  // killed at the time limit
  int exit_code = -1;      // -1: a signal ended it
  int signal_number = 0;
  std::string answer;  // what it wrote to kAnswerDescriptor
  std::string said;    // the end of its standard output and standard error together, 16 KiB at most
};

// Where the child writes its answer.
inline constexpr int kAnswerDescriptor = 3;
inline constexpr size_t kMostAnswerBytes = size_t{64} << 20;

// Throws for a program that cannot be started, for an answer that is too long, and when the user
// interrupts; the child's process group is killed before.
ChildResult run_child(const ChildCommand& command);

}  // namespace fp8kv
