// SIGINT, SIGTERM and SIGHUP end long work at the next safe point, so that destructors clean up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fp8kv {

// Installs the handlers. A second signal ends the program at once.
void install_interrupt_handlers();

// Throws Error{kind: interrupted} when a signal has arrived. Cheap: call it in every long loop.
void check_interrupt();

// Whether one has: what takes long and only tidies up can be left to the end of the program.
bool is_interrupted();

// While one lives, the program has nothing to tidy up: no temporary file, no half-written output.
// An interrupt that no loop has heard 10 ms later, or that memory is still being freed for, then
// ends the program as it is, with the message and the exit code that it would have had. For code
// that goes over what users give, which may be gigabytes: one match of a pattern, or one array that
// grows, can take seconds. Outside of it an interrupt waits until a loop hears it.
class NothingToTidy {
 public:
  NothingToTidy();   // throws as check_interrupt does
  ~NothingToTidy();  // unless there was an interrupt: then what is left to do is to end
  NothingToTidy(const NothingToTidy&) = delete;
  NothingToTidy& operator=(const NothingToTidy&) = delete;
};

// What such an end says on standard error; nothing unless this was called. At most 127 bytes.
void set_interrupt_message(std::string_view text);

// No such end from here on: the interrupt was heard, and its message is being written.
void heard_interrupt();

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
