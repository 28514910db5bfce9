#include "base/interrupt.h"

#include <atomic>
#include <signal.h>

#include "base/error.h"

namespace fp8kv {
namespace {

std::atomic<int> received{0};  // lock-free, so that a signal handler may store to it

thread_local uint64_t checks = 0;

void on_signal(int signal_number) {
  received.store(signal_number, std::memory_order_relaxed);
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
  signal(SIGPIPE, SIG_IGN);  // a closed stdout shows up as EPIPE, which ends quietly
  signal(SIGXFSZ, SIG_IGN);  // a file of the largest size allowed, as EFBIG
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
