// Runs a program without a shell and with a time limit. It gets a text as standard input. Its
// standard output and standard error are kept for messages, and it writes its answer to a separate
// descriptor. When the program ends, or the caller stops waiting, all processes of its group are
// killed.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace fp8kv {

struct ChildCommand {
  std::vector<std::string> words;  // program (a path, or a name in PATH) and arguments
  std::string input;               // complete standard input
  double time_limit_s = 0;
  std::filesystem::path folder = {};  // working folder; "": this process's
  // The complete environment as NAME=VALUE; nullopt: this process's environment.
  std::optional<std::vector<std::string>> environment = {};
};

struct ChildResult {
  bool timed_out = false;  // killed at the time limit
  int exit_code = -1;      // -1: a signal ended it
  int signal_number = 0;
  std::string answer;  // the text written to kAnswerDescriptor
  std::string said;    // the last 16 KiB of standard output and standard error together
};

// The descriptor to which the child writes its answer.
inline constexpr int kAnswerDescriptor = 3;
inline constexpr size_t kMostAnswerBytes = size_t{64} << 20;

// Throws if the program cannot be started, if the answer is too long, or if the user interrupts.
// The child's process group is killed first.
ChildResult run_child(const ChildCommand& command);

}  // namespace fp8kv
