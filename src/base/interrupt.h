// SIGINT, SIGTERM and SIGHUP end long work at the next safe point, so that destructors clean up.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fp8kv {

// Installs the handlers. A second signal ends the program at once.
void install_interrupt_handlers();

// Throws Error{kind: interrupted} when a signal has arrived. Cheap: call it in every long loop.
void check_interrupt();

// Whether one has: what takes long and only tidies up can be left to the end of the program.
bool is_interrupted();

// How often this thread has called it: tests hold loops to that instead of to the clock.
uint64_t interrupt_checks();

// For loops over the bytes of a text: looks once every 32 KiB or so, whatever begins there.
class InterruptEvery {
 public:
  void passed(size_t at) {
    if (at < next_) return;
    next_ = at + (size_t{32} << 10);
    check_interrupt();
  }

 private:
  size_t next_ = 0;
};

}  // namespace fp8kv
