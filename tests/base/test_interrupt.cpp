// Each case runs in its own process, which installs the handlers and is interrupted.
#include <csignal>
#include <functional>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include "base/error.h"
#include "base/interrupt.h"

namespace fp8kv {
namespace {

constexpr int kTidied = 7;

struct Ended {
  int status = 0;
  std::string said;
};

Ended in_a_process(const std::function<void()>& work) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    install_interrupt_handlers();
    set_interrupt_message("interrupted\n");
    try {
      work();
    } catch (const Error&) {
      _exit(kTidied);
    }
    _exit(0);
  }
  close(ends[1]);
  Ended ended;
  char block[256];
  for (ssize_t got; (got = read(ends[0], block, sizeof block)) > 0;) {
    ended.said.append(block, static_cast<size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  ended.status = WEXITSTATUS(status);
  return ended;
}

}  // namespace

TEST_CASE("interrupt: where nothing has to be tidied up, the program need not hear it to end") {
  const Ended ended = in_a_process([] {
    const NothingToTidy reading;
    raise(SIGINT);
    while (true) pause();  // a loop that never checks for interrupts
  });
  CHECK(ended.status == 130);
  CHECK(ended.said == "interrupted\n");
}

TEST_CASE("interrupt: what still frees its memory afterwards need not be waited for") {
  const Ended ended = in_a_process([] {
    struct Slow {
      ~Slow() {
        while (true) pause();
      }
    } const slow;
    const NothingToTidy reading;
    raise(SIGINT);
    check_interrupt();
  });
  CHECK(ended.status == 130);
  CHECK(ended.said == "interrupted\n");
}

TEST_CASE("interrupt: where there is something to tidy up, it waits until it is heard") {
  const Ended ended = in_a_process([] {
    { const NothingToTidy reading; }
    sigset_t alarm;  // SIGALRM is blocked until sigsuspend
    sigset_t before;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    sigprocmask(SIG_BLOCK, &alarm, &before);
    raise(SIGINT);
    sigsuspend(&before);  // until the time limit for hearing it is over
    check_interrupt();
  });
  CHECK(ended.status == kTidied);
  CHECK(ended.said == "");
}

TEST_CASE("interrupt: nothing is begun after one") {
  const Ended ended = in_a_process([] {
    raise(SIGINT);
    const NothingToTidy reading;
  });
  CHECK(ended.status == kTidied);
}

}  // namespace fp8kv
