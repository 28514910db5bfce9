#include <chrono>
#include <csignal>
#include <filesystem>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include <doctest/doctest.h>

#include "base/text.h"
#include "files/child_process.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

// Ignores SIGPIPE like the program does, so that a child that reads no input does not end it.
struct IgnoredPipeSignal {
  IgnoredPipeSignal() : before(std::signal(SIGPIPE, SIG_IGN)) {}
  ~IgnoredPipeSignal() { std::signal(SIGPIPE, before); }
  void (*before)(int);
};

ChildResult run_shell(const std::string& script, double time_limit_s = 20,
                      const std::string& input = "") {
  return run_child({{"sh", "-c", script}, input, time_limit_s});
}

bool is_running(pid_t process) {
  return kill(process, 0) == 0;
}

TEST_CASE("child process: gets its input, and answers apart from what it says") {
  const ChildResult result = run_shell("cat >&3; echo said; echo more >&2; exit 7", 20, "given");
  CHECK(result.answer == "given");
  CHECK(result.said == "said\nmore\n");
  CHECK(result.exit_code == 7);
  CHECK_FALSE(result.timed_out);
}

TEST_CASE("child process: more goes in and out than a pipe holds") {
  const std::string input(size_t{3} << 20, 'x');
  const ChildResult result = run_shell("cat >&3", 20, input);
  CHECK(result.answer == input);
  const IgnoredPipeSignal ignored;
  const ChildResult unread = run_shell("exec true", 20, input);
  CHECK(unread.exit_code == 0);
}

TEST_CASE("child process: the end of a long speech is kept") {
  const ChildResult result = run_shell("yes words | head -n 100000; echo last");
  CHECK(result.said.size() == size_t{16} << 10);
  CHECK(result.said.ends_with("words\nlast\n"));
}

TEST_CASE("child process: at the time limit it is killed, and all that it started") {
  const test::TempDir temp;
  const auto began = std::chrono::steady_clock::now();
  const ChildResult result =
      run_shell(cat("sleep 60 & echo $! > ", (temp / "pid").string(), "; echo begun; wait"), 0.3);
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(20));
  CHECK(result.timed_out);
  CHECK(result.signal_number == SIGKILL);
  CHECK(result.said == "begun\n");
  const pid_t sleeper = std::stoi(test::read_file(temp / "pid"));
  for (int i = 0; i < 1000 && is_running(sleeper); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK_FALSE(is_running(sleeper));
}

TEST_CASE("child process: what it leaves running does not keep this program waiting") {
  const auto began = std::chrono::steady_clock::now();
  const ChildResult result = run_shell("sleep 60 & echo done >&3");
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(20));
  CHECK(result.exit_code == 0);
  CHECK(result.answer == "done\n");
}

TEST_CASE("child process: a signal that ends it is told") {
  const ChildResult result = run_shell("kill -SEGV $$");
  CHECK(result.exit_code == -1);
  CHECK(result.signal_number == SIGSEGV);
}

TEST_CASE("child process: signals that this program ignores end it as usual") {
  const IgnoredPipeSignal ignored;
  const ChildResult result = run_shell("kill -PIPE $$");
  CHECK(result.signal_number == SIGPIPE);
}

TEST_CASE("child process: what cannot be started is named") {
  const test::TempDir temp;
  const std::string file = temp.write("text", "no program\n").string();
  const auto start = [](const std::string& program) { run_child({{program}, "", 20}); };
  CHECK(test::error_of([&] { start("no-such-program-5"); }) ==
        "'no-such-program-5': cannot start: No such file or directory");
  CHECK(test::error_of([&] { start(file); }, ErrorKind::resource) ==
        cat("'", file, "': cannot start: Permission denied"));
}

}  // namespace
}  // namespace fp8kv
