// SIGINT, SIGTERM and SIGHUP end long work at its next safe point, so that destructors clean up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fp8kv {

// Installs the handlers. A second signal ends the program at once.
void install_interrupt_handlers();

// Throws Error{kind: interrupted} if a signal has arrived. It is cheap: call it in every long loop.
void check_interrupt();

// Whether a signal has arrived. Slow work that only tidies up can then be left to the program's
// end.
bool is_interrupted();

// While an object of this class exists, the program has nothing to tidy up: no temporary file and
// no half-written output. An interrupt then ends the program at once if no loop notices it within
// 10 ms, or if freeing memory delays the end. The message and the exit code stay the usual ones.
// Use it around code that reads user data of any size: matching one pattern or growing one array
// can take seconds. Without it an interrupt waits until a loop notices it.
class NothingToTidy {
 public:
  NothingToTidy();   // throws like check_interrupt
  ~NothingToTidy();  // after an interrupt it counts on: the program just has to end
  NothingToTidy(const NothingToTidy&) = delete;
  NothingToTidy& operator=(const NothingToTidy&) = delete;
};

// Sets the message that an end at once writes on standard error; none by default. At most 127
// bytes.
void set_interrupt_message(std::string_view text);

// Rules out such an end from now on: the interrupt was noticed, and its message is being written.
void heard_interrupt();

// How often this thread has called check_interrupt. Tests check loops by this number, not by a
// clock.
uint64_t interrupt_checks();

// For loops over the bytes of a text: checks for an interrupt about every 32 KiB.
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
