#include "files/mapping_guard.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace fp8kv {
namespace {

constexpr size_t kMostGuarded = 4096;

// A signal handler can take no lock and gets no argument from this code. So it looks at a fixed
// table of atomics.
struct Slot {
  std::atomic<bool> taken{false};
  std::atomic<uintptr_t> begin{0};  // 0: the slot is empty
  std::atomic<uintptr_t> end{0};
  std::atomic<bool> faulted{false};
};

std::array<Slot, kMostGuarded> slots;
uintptr_t page_bytes = 0;
struct sigaction before {};  // the earlier action for SIGBUS, such as a sanitizer's

// If `address` is in a guarded mapping, replaces the mapping by zeros from that page to its end.
// All at once, because every page past the end of a file is missing, and the system limits the
// number of mappings.
bool replace_pages(uintptr_t address) {
  for (Slot& slot : slots) {
    const uintptr_t begin = slot.begin.load(std::memory_order_acquire);
    const uintptr_t end = slot.end.load(std::memory_order_relaxed);
    if (begin == 0 || address < begin || address >= end) continue;
    const uintptr_t page = address - address % page_bytes;
    // Calls the system directly, since sanitizers replace mmap() by a function that is unsafe in
    // signal handlers.
    const long mapped = ::syscall(SYS_mmap, page, end - page, PROT_READ,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    if (mapped == -1) return false;
    slot.faulted.store(true, std::memory_order_release);
    return true;
  }
  return false;
}

void on_bus_error(int signal_number, siginfo_t* info, void* context) {
  const int kept = errno;
  const bool from_memory = info->si_code > 0;  // otherwise a process sent the signal
  const bool ours = from_memory && replace_pages(reinterpret_cast<uintptr_t>(info->si_addr));
  errno = kept;
  if (ours) return;
  if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(signal_number, info, context);
  if (before.sa_handler == SIG_IGN) return;
  if (before.sa_handler != SIG_DFL) return before.sa_handler(signal_number);
  ::signal(SIGBUS, SIG_DFL);  // the access repeats, and then ends the program
  if (!from_memory) ::raise(SIGBUS);
}

void install_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    page_bytes = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    ::sigaction(SIGBUS, &action, &before);
  });
}

}  // namespace

MappingGuard::MappingGuard(const void* address, size_t bytes) : slot_(0) {
  install_handler();
  for (; slot_ < kMostGuarded; ++slot_) {
    bool free = false;
    if (slots[slot_].taken.compare_exchange_strong(free, true)) break;
  }
  if (slot_ == kMostGuarded) return;
  const auto begin = reinterpret_cast<uintptr_t>(address);
  slots[slot_].faulted.store(false, std::memory_order_relaxed);
  slots[slot_].end.store(begin + bytes, std::memory_order_relaxed);
  slots[slot_].begin.store(begin, std::memory_order_release);
}

MappingGuard::~MappingGuard() {
  if (slot_ == kMostGuarded) return;
  slots[slot_].begin.store(0, std::memory_order_release);
  slots[slot_].taken.store(false, std::memory_order_release);
}

bool MappingGuard::faulted() const {
  return slot_ < kMostGuarded && slots[slot_].faulted.load(std::memory_order_acquire);
}

}  // namespace fp8kv
