#include "base/interrupt.h"

#include <atomic>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/error.h"

namespace fp8kv {
namespace {

std::atomic<int> received{0};  // lock-free, so that a signal handler may store to it

thread_local uint64_t checks = 0;

constexpr suseconds_t kHeardWithinUs = 10'000;
std::atomic<int> nothing_to_tidy{0};  // how many NothingToTidy objects exist
char message[128];
std::atomic<size_t> message_bytes{0};

void on_signal(int signal_number) {
  received.store(signal_number, std::memory_order_relaxed);
  const itimerval once{{0, 0}, {0, kHeardWithinUs}};
  setitimer(ITIMER_REAL, &once, nullptr);  // a plain system call, which signal handlers may make
}

// Does only what a signal handler may do, since any code may be running.
void on_not_heard(int) {
  if (nothing_to_tidy.load(std::memory_order_relaxed) == 0) return;
  const ssize_t ignored = write(STDERR_FILENO, message, message_bytes.load());
  static_cast<void>(ignored);
  _exit(static_cast<int>(ErrorKind::interrupted));
}

}  // namespace

void install_interrupt_handlers() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // the second signal has its default effect
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction hang_up {};
  sigaction(SIGHUP, nullptr, &hang_up);
  if (hang_up.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);  // nohup ignores it
  struct sigaction not_heard {};
  not_heard.sa_handler = on_not_heard;
  not_heard.sa_flags = SA_RESTART;
  sigemptyset(&not_heard.sa_mask);
  sigaction(SIGALRM, &not_heard, nullptr);
  signal(SIGPIPE, SIG_IGN);  // a closed stdout gives EPIPE, and the program ends quietly
  signal(SIGXFSZ, SIG_IGN);  // a file beyond the size limit fails with EFBIG instead
}

NothingToTidy::NothingToTidy() {
  check_interrupt();
  ++nothing_to_tidy;
}

NothingToTidy::~NothingToTidy() {
  if (!is_interrupted()) --nothing_to_tidy;
}

void set_interrupt_message(std::string_view text) {
  message_bytes = text.copy(message, sizeof message);
}

void heard_interrupt() {
  signal(SIGALRM, SIG_IGN);
}

uint64_t interrupt_checks() {
  return checks;
}

bool is_interrupted() {
  return received.load(std::memory_order_relaxed) != 0;
}

void check_interrupt() {
  ++checks;
  if (is_interrupted()) {
    throw Error("interrupted", "", ErrorKind::interrupted);
  }
}

}  // namespace fp8kv
