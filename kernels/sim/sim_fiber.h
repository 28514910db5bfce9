// Switches between stacks on one OS thread, for the simulator: one fiber is one GPU thread. Knows
// the processor (an assembly switch on x86-64, ucontext elsewhere) and the sanitizers, but nothing
// of kernels.
#pragma once

#include <cstddef>
#include <memory>

namespace fp8kv::sim {

class Fibers {
 public:
  // The function of a fiber; a fiber that returns is done.
  using Entry = void (*)(int index);

  Fibers();
  ~Fibers();
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  // Makes room for fibers 0 ... count - 1. Not on a fiber.
  void reserve(int count);
  // The next resume() of fiber `index` starts `entry`, whatever the fiber did before. Its old stack
  // is dropped without unwinding.
  void start(int index, Entry entry);
  // Runs fiber `index` until it suspends or is done. Not on a fiber.
  void resume(int index);
  // Switches back to the caller of resume(). On a fiber only.
  void suspend();
  // Suspends this fiber and runs fiber `index`, which suspends to the same caller of resume(). One
  // switch in place of suspend() and resume(). On a fiber only.
  void switch_to(int index);

  // ThreadSanitizer does not count a switch as synchronisation; these two tell it. No-ops
  // otherwise.
  static void release(void* tag);
  static void acquire(void* tag);

 private:
  struct State;
  static void enter();
  std::unique_ptr<State> state_;
};

}  // namespace fp8kv::sim
