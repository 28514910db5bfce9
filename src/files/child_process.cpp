#include "files/child_process.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "base/error.h"
#include "base/interrupt.h"
#include "files/descriptor.h"

namespace fp8kv {
namespace {

constexpr size_t kMostSaid = size_t{16} << 10;
constexpr int kPollMs = 50;  // delay for noticing interrupts, time limit and child's end

struct Pipe {
  FileDescriptor read;
  FileDescriptor write;
};

// A child does not inherit these ends by itself. Their numbers are above those of the child's own
// descriptors.
Pipe make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail_system("pipe", "open", errno);
  const FileDescriptor first(ends[0]), second(ends[1]);
  const auto above = [](const FileDescriptor& end) {
    const int copy = fcntl(end.get(), F_DUPFD_CLOEXEC, kAnswerDescriptor + 1);
    if (copy < 0) fail_system("pipe", "open", errno);
    return FileDescriptor(copy);
  };
  return {above(first), above(second)};
}

// An array of C strings that ends with a null pointer, for exec.
class Strings {
 public:
  explicit Strings(std::vector<std::string> strings) : strings_(std::move(strings)) {
    for (std::string& each : strings_) pointers_.push_back(each.data());
    pointers_.push_back(nullptr);
  }
  Strings(const Strings&) = delete;
  Strings& operator=(const Strings&) = delete;

  char* const* data() { return pointers_.data(); }

 private:
  std::vector<std::string> strings_;
  std::vector<char*> pointers_;
};

// Owns the arguments of posix_spawn and frees them.
class SpawnSetup {
 public:
  SpawnSetup() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    // The child gets its own process group, so that everything it starts can be killed. It also
    // gets default handlers for signals that this program ignores (interrupt.h).
    sigset_t ignored;
    sigemptyset(&ignored);
    sigaddset(&ignored, SIGPIPE);
    sigaddset(&ignored, SIGXFSZ);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setsigdefault(&attributes_, &ignored);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnSetup() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;

  void give(const FileDescriptor& end, int as) {
    posix_spawn_file_actions_adddup2(&actions_, end.get(), as);
  }
  pid_t start(const ChildCommand& command) {
    if (!command.folder.empty()) {
      posix_spawn_file_actions_addchdir_np(&actions_, command.folder.c_str());
    }
    Strings words(command.words);
    Strings environment(command.environment.value_or(std::vector<std::string>()));
    pid_t child = 0;
    const int error = posix_spawnp(&child, words.data()[0], &actions_, &attributes_, words.data(),
                                   command.environment ? environment.data() : environ);
    if (error != 0) fail_system(command.words.front(), "start", error);
    return child;
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// A running child process. The destructor kills it with its group.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // The exit status, or nullopt while the child runs. Once it has ended, the rest of its group is
  // killed.
  std::optional<int> status() {
    if (!status_) {
      siginfo_t info{};
      const int error = waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
      if (error == 0 && info.si_pid == pid_) end();
    }
    return status_;
  }
  // Kills the group before waiting: until then the pid stays reserved, so no other group can be
  // hit.
  void end() {
    if (status_) return;
    kill(-pid_, SIGKILL);
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    status_ = status;
  }

 private:
  pid_t pid_;
  std::optional<int> status_;
};

// Appends all bytes that are ready to read. Returns whether more may come.
bool take(const FileDescriptor& end, std::string& text) {
  char bytes[4096];
  for (;;) {
    const ssize_t got = read(end.get(), bytes, sizeof bytes);
    if (got > 0) text.append(bytes, static_cast<size_t>(got));
    if (got == 0) return false;
    if (got < 0 && errno != EINTR) return errno == EAGAIN;
  }
}

// Feeds a running child and collects everything that it writes.
class Exchange {
 public:
  Exchange(const ChildCommand& command, Pipe& input, Pipe& said, Pipe& answer)
      : input_(command.input), in_(input.write), said_(said.read), answer_(answer.read) {
    for (const int end : {in_.get(), said_.get(), answer_.get()}) fcntl(end, F_SETFL, O_NONBLOCK);
  }

  // Waits a moment for the child to read or write, and then moves the bytes.
  void step(ChildResult& result) {
    pollfd polled[3] = {{writing_ ? in_.get() : -1, POLLOUT, 0},
                        {hears_ ? said_.get() : -1, POLLIN, 0},
                        {asks_ ? answer_.get() : -1, POLLIN, 0}};
    poll(polled, 3, kPollMs);
    if (writing_) write_some();
    read_some(result);
  }
  void read_some(ChildResult& result) {
    if (hears_) hears_ = take(said_, result.said);
    if (result.said.size() > kMostSaid) result.said.erase(0, result.said.size() - kMostSaid);
    if (asks_) asks_ = take(answer_, result.answer);
    if (result.answer.size() > kMostAnswerBytes) fail("the answer is longer than 64 MiB");
  }

 private:
  void write_some() {
    const ssize_t wrote = write(in_.get(), input_.data() + written_, input_.size() - written_);
    if (wrote > 0) written_ += static_cast<size_t>(wrote);
    const bool gone = wrote < 0 && errno != EAGAIN && errno != EINTR;
    if (!gone && written_ < input_.size()) return;
    writing_ = false;
    in_.close();
  }

  const std::string& input_;
  FileDescriptor& in_;
  const FileDescriptor& said_;
  const FileDescriptor& answer_;
  size_t written_ = 0;
  bool writing_ = true;
  bool hears_ = true;
  bool asks_ = true;
};

}  // namespace

ChildResult run_child(const ChildCommand& command) {
  Pipe input = make_pipe(), said = make_pipe(), answer = make_pipe();
  SpawnSetup setup;
  setup.give(input.read, STDIN_FILENO);
  setup.give(said.write, STDOUT_FILENO);
  setup.give(said.write, STDERR_FILENO);
  setup.give(answer.write, kAnswerDescriptor);
  Child child(setup.start(command));
  input.read.close();
  said.write.close();
  answer.write.close();
  const auto limit = std::chrono::duration<double>(command.time_limit_s);
  const auto began = std::chrono::steady_clock::now();
  ChildResult result;
  Exchange exchange(command, input, said, answer);
  while (!child.status()) {
    exchange.step(result);
    check_interrupt();
    if (std::chrono::steady_clock::now() - began < limit) continue;
    result.timed_out = true;
    child.end();
  }
  exchange.read_some(result);
  const int status = *child.status();
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal_number = WTERMSIG(status);
  return result;
}

}  // namespace fp8kv
