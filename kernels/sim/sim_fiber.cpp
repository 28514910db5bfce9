// Compiled without ThreadSanitizer's instrumentation, like the whole simulator: only kernels are
// checked. FP8KV_TSAN says that the rest of the program runs under it.
#include "kernels/sim/sim_fiber.h"

#include <cstdint>
#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif
#if defined(FP8KV_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(FP8KV_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

#include "base/error.h"

namespace fp8kv::sim {
namespace {

// Kernels keep tiles in registers, which here are on the stack; sanitizers add to every frame.
constexpr size_t kStackBytes = size_t{128} << 10;
constexpr size_t kGuardBytes = size_t{4} << 10;
[[maybe_unused]] constexpr size_t kOutermostBytes = size_t{4} << 10;  // more than enter()'s frame

#if defined(__x86_64__)

using Machine = void*;  // the stack pointer; everything else is on the stack

// Saves the registers that the System V ABI has a callee keep, swaps stacks, restores. ucontext
// makes a system call per switch, and is ten times as slow.
extern "C" void fp8kv_sim_switch(void** from, void* to);
asm(R"(
.text
.p2align 4
.hidden fp8kv_sim_switch
.globl fp8kv_sim_switch
.type fp8kv_sim_switch,@function
fp8kv_sim_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp,(%rdi)
  movq %rsi,%rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  retq
.size fp8kv_sim_switch,.-fp8kv_sim_switch
)");

void switch_machine(Machine& from, Machine& to) {
  fp8kv_sim_switch(&from, to);
}

void prepare_machine(Machine& machine, std::byte* stack, void (*entry)()) {
  void** top = reinterpret_cast<void**>(stack + kStackBytes);
  *--top = nullptr;  // return address of `entry`, with the alignment of a call
  *--top = reinterpret_cast<void*>(entry);
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  machine = top;
}

#else

using Machine = ucontext_t;

void switch_machine(Machine& from, Machine& to) {
  swapcontext(&from, &to);
}

void prepare_machine(Machine& machine, std::byte* stack, void (*entry)()) {
  getcontext(&machine);
  machine.uc_stack.ss_sp = stack;
  machine.uc_stack.ss_size = kStackBytes;
  machine.uc_link = nullptr;
  makecontext(&machine, entry, 0);
}

#endif

struct Fiber {
  Machine machine{};
  std::byte* stack = nullptr;
  Fibers::Entry entry = nullptr;
  bool done = false;           // ran to its end
  void* fake_stack = nullptr;  // AddressSanitizer's
  void* tsan = nullptr;
};

}  // namespace

struct Fibers::State {
  std::vector<Fiber> fibers;
  std::vector<std::pair<void*, size_t>> mappings;
  Machine scheduler{};
  int current = -1;
  void* scheduler_fake_stack = nullptr;
  const void* scheduler_stack = nullptr;
  size_t scheduler_stack_bytes = 0;
  [[maybe_unused]] bool by_scheduler = false;  // who made the last switch to a fiber
  void* scheduler_tsan = nullptr;
};

namespace {

Fibers* active = nullptr;  // owner of the fiber being entered

// Switches from a fiber to another stack, and tells the sanitizers. Returns when the fiber is
// resumed.
void leave(Fiber& from, Machine& to, [[maybe_unused]] const void* stack,
           [[maybe_unused]] size_t stack_bytes, [[maybe_unused]] void* tsan) {
#if defined(FP8KV_ASAN)
  __sanitizer_start_switch_fiber(from.done ? nullptr : &from.fake_stack, stack, stack_bytes);
#endif
#if defined(FP8KV_TSAN)
  __tsan_switch_to_fiber(tsan, __tsan_switch_to_fiber_no_sync);
#endif
  switch_machine(from.machine, to);
#if defined(FP8KV_ASAN)
  __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
}

}  // namespace

Fibers::Fibers() : state_(std::make_unique<State>()) {}

Fibers::~Fibers() {
  for ([[maybe_unused]] Fiber& fiber : state_->fibers) {
#if defined(FP8KV_TSAN)
    if (fiber.tsan) __tsan_destroy_fiber(fiber.tsan);
#endif
#if defined(FP8KV_ASAN)
    ASAN_UNPOISON_MEMORY_REGION(fiber.stack, kStackBytes);
#endif
  }
  for (const auto& [base, bytes] : state_->mappings) munmap(base, bytes);
}

void Fibers::reserve(int count) {
  const size_t have = state_->fibers.size();
  const auto want = static_cast<size_t>(count);
  if (want <= have) return;
  const size_t pitch = kStackBytes + kGuardBytes;
  const size_t bytes = (want - have) * pitch;
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    throw Error(cat("sim: cannot allocate ", want - have, " stacks"), "", ErrorKind::resource);
  }
  state_->mappings.emplace_back(base, bytes);
  for (size_t i = have; i < want; ++i) {
    std::byte* guard = static_cast<std::byte*>(base) + (i - have) * pitch;
    mprotect(guard, kGuardBytes, PROT_NONE);  // stacks grow down into it
    Fiber& fiber = state_->fibers.emplace_back();
    fiber.stack = guard + kGuardBytes;
#if defined(FP8KV_TSAN)
    fiber.tsan = __tsan_create_fiber(0);
#endif
  }
}

void Fibers::start(int index, Entry entry) {
  Fiber& fiber = state_->fibers[static_cast<size_t>(index)];
#if defined(FP8KV_ASAN)
  // The last run's frames. A run to the end leaves only the outermost.
  const size_t left = fiber.done ? kOutermostBytes : kStackBytes;
  ASAN_UNPOISON_MEMORY_REGION(fiber.stack + kStackBytes - left, left);
#endif
  fiber.entry = entry;
  fiber.done = false;
  fiber.fake_stack = nullptr;
  prepare_machine(fiber.machine, fiber.stack, &Fibers::enter);
}

void Fibers::enter() {
  Fibers& self = *active;
  State& state = *self.state_;
#if defined(FP8KV_ASAN)
  const void* stack = nullptr;
  size_t bytes = 0;
  __sanitizer_finish_switch_fiber(nullptr, &stack, &bytes);
  if (state.by_scheduler) {
    state.scheduler_stack = stack;
    state.scheduler_stack_bytes = bytes;
  }
#endif
  const int index = state.current;
  Fiber& fiber = state.fibers[static_cast<size_t>(index)];
  fiber.entry(index);
  fiber.done = true;
  self.suspend();
  std::abort();  // a fiber that is done is not resumed
}

void Fibers::resume(int index) {
  State& state = *state_;
  Fiber& fiber = state.fibers[static_cast<size_t>(index)];
  active = this;
  state.current = index;
  state.by_scheduler = true;
#if defined(FP8KV_ASAN)
  __sanitizer_start_switch_fiber(&state.scheduler_fake_stack, fiber.stack, kStackBytes);
#endif
#if defined(FP8KV_TSAN)
  state.scheduler_tsan = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(fiber.tsan, __tsan_switch_to_fiber_no_sync);
#endif
  switch_machine(state.scheduler, fiber.machine);
#if defined(FP8KV_ASAN)
  __sanitizer_finish_switch_fiber(state.scheduler_fake_stack, nullptr, nullptr);
#endif
  state.current = -1;
}

void Fibers::suspend() {
  State& state = *state_;
  leave(state.fibers[static_cast<size_t>(state.current)], state.scheduler, state.scheduler_stack,
        state.scheduler_stack_bytes, state.scheduler_tsan);
}

void Fibers::switch_to(int index) {
  State& state = *state_;
  Fiber& from = state.fibers[static_cast<size_t>(state.current)];
  Fiber& to = state.fibers[static_cast<size_t>(index)];
  state.current = index;
  state.by_scheduler = false;
  leave(from, to.machine, to.stack, kStackBytes, to.tsan);
}

void Fibers::release([[maybe_unused]] void* tag) {
#if defined(FP8KV_TSAN)
  __tsan_release(tag);
#endif
}

void Fibers::acquire([[maybe_unused]] void* tag) {
#if defined(FP8KV_TSAN)
  __tsan_acquire(tag);
#endif
}

}  // namespace fp8kv::sim
