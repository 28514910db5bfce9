#include "support/program/run_cli.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <sstream>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "base/error.h"
#include "support/places.h"
#include "support/temp_dir.h"

namespace fp8kv::test {
namespace {

// A pipe. The child inherits only the end that it is given.
struct Pipe {
  Pipe() { FP8KV_ASSERT(pipe2(ends, O_CLOEXEC) == 0); }
  ~Pipe() {
    close_read();
    close_write();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_read() { close_end(0); }
  void close_write() { close_end(1); }

  int ends[2] = {-1, -1};

 private:
  void close_end(int index) {
    if (ends[index] >= 0) close(ends[index]);
    ends[index] = -1;
  }
};

// Files for a run's streams. They are made before the fork, because nothing may allocate after it.
struct Streams {
  TempDir folder;
  std::string out = (folder / "out").string();
  std::string err = (folder / "err").string();
};

void redirect(const std::string& file, int flags, int descriptor) {
  const int opened = open(file.c_str(), flags, 0600);
  if (opened < 0 || dup2(opened, descriptor) < 0) _exit(126);
}

// Runs in the child between fork and exec, so it makes only system calls.
void set_up(const CliSetup& setup, const Streams& files, const Pipe& input, const Pipe& output) {
  if (chdir(setup.folder.c_str()) != 0) _exit(126);
  if (setup.input_file.empty()) {
    if (dup2(input.ends[0], STDIN_FILENO) < 0) _exit(126);
  } else {
    redirect(setup.input_file.native(), O_RDONLY, STDIN_FILENO);
  }
  redirect(files.err, O_WRONLY | O_CREAT, STDERR_FILENO);
  if (setup.reader_gone) {
    if (dup2(output.ends[1], STDOUT_FILENO) < 0) _exit(126);
  } else if (setup.out.empty()) {
    redirect(files.out, O_WRONLY | O_CREAT, STDOUT_FILENO);
  } else {
    redirect(setup.out.native(), O_WRONLY, STDOUT_FILENO);
  }
  if (setup.largest_file == 0) return;
  const rlimit limit{setup.largest_file, setup.largest_file};
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(126);
}

CliResult said_so_far(const Streams& files) {
  return {-1, read_file(files.out), read_file(files.err)};
}

// Waits for the moment to interrupt, and sends the signal unless the program has ended.
void interrupt(pid_t child, const CliSetup& setup, const Streams& files) {
  while (!setup.interrupt_when(said_so_far(files))) {
    siginfo_t info{};
    FP8KV_ASSERT(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0);
    if (info.si_pid == child) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  kill(child, setup.signal_number);
}

// The variables of the run, then those of this process that the run does not have.
std::vector<std::string> environment_of(const CliSetup& setup) {
  std::vector<std::string> variables = setup.environment;
  for (char** own = environ; *own; ++own) {
    const std::string name = std::string(*own, std::strcspn(*own, "=")) + "=";
    const bool given = std::any_of(setup.environment.begin(), setup.environment.end(),
                                   [&](const std::string& each) { return each.starts_with(name); });
    if (!given) variables.emplace_back(*own);
  }
  return variables;
}

}  // namespace

CliResult run_cli(const std::vector<std::string>& arguments, const CliSetup& setup) {
  constexpr size_t kHoldsWithoutReader = size_t(64) << 10;
  FP8KV_ASSERT(setup.input.size() <= kHoldsWithoutReader);
  const Streams files;
  std::string program = (setup.program.empty() ? built_program() : setup.program).string();
  std::vector<std::string> copies = arguments;
  std::vector<char*> argv = {program.data()};
  for (std::string& argument : copies) argv.push_back(argument.data());
  argv.push_back(nullptr);
  std::vector<std::string> variables = environment_of(setup);
  std::vector<char*> environment;
  for (std::string& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  Pipe input;
  Pipe output;
  output.close_read();
  const pid_t child = fork();
  FP8KV_ASSERT(child >= 0);
  if (child == 0) {
    set_up(setup, files, input, output);
    execve(program.c_str(), argv.data(), environment.data());
    _exit(127);
  }
  FP8KV_ASSERT(write(input.ends[1], setup.input.data(), setup.input.size()) ==
               static_cast<ssize_t>(setup.input.size()));
  if (setup.interrupt_when) interrupt(child, setup, files);
  input.close_write();
  int status = 0;
  rusage usage{};
  FP8KV_ASSERT(wait4(child, &status, 0, &usage) == child);
  CliResult result = said_so_far(files);
  result.peak_bytes = int64_t{usage.ru_maxrss} << 10;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

std::string lasting_lines(const std::string& err) {
  std::istringstream lines(err);
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    const size_t percent = line.find(" % ");
    const bool progress = percent != line.npos && percent > 0 && std::isdigit(line[percent - 1]);
    if (progress || line.starts_with("computing on ") || line.starts_with("first token after ") ||
        line.starts_with("about ")) {
      continue;
    }
    kept += line + "\n";
  }
  return kept;
}

std::string without_hex_after(const std::string& text, const std::string& mark) {
  std::string out;
  size_t from = 0;
  for (size_t at; (at = text.find(mark, from)) != text.npos;) {
    at += mark.size();
    out += text.substr(from, at - from);
    from = at;
    while (from < text.size() && std::isxdigit(text[from])) ++from;
  }
  return out + text.substr(from);
}

}  // namespace fp8kv::test
