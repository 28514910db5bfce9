// Runs GPU kernels on the CPU, strictly: what real hardware leaves undefined is an error here.
//   - Threads are fibers. Blocks run one after another. Blocks, warps and lanes run in ascending
//     order, or in an order drawn from a seed, so that nothing can rely on an order.
//   - A barrier that some threads of the block do not reach, or a warp operation that some lanes do
//     not reach, is an error that names the kernel's line.
//   - Shared memory is all 0xff (NaN) when a block starts, so reads before a write become visible.
//     Every piece of it lies between zones that AddressSanitizer guards.
//   - Asynchronous copies land only when they are waited for; until then their target is 0xff.
//   - ThreadSanitizer sees each thread as a thread of its own, and barriers as the only
//     synchronisation: it reports a race within a block or between blocks with its line.
// It does not simulate time, the memory model between blocks, or the hardware's rounding inside of
// matrix instructions. It runs one launch at a time; launches from several OS threads wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace fp8kv::sim {

struct Grid {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

// A statement of a kernel.
struct Place {
  const char* file;
  int line;
};

// Shared memory that every GPU with warps of this width gives a block: the least are sm_86 and
// sm_89, and AMD's.
constexpr size_t most_shared_bytes(int warp) {
  return (warp == 32 ? size_t{99} : size_t{64}) * 1024;
}

struct LaunchShape {
  const char* kernel;
  Grid grid;
  int threads;          // a multiple of `warp`, up to 1024
  int warp;             // 32 or 64
  size_t shared_bytes;  // up to most_shared_bytes(warp)
};

// 0: ascending order. Otherwise, blocks, warps and lanes run in an order drawn from the seed at
// every step.
void set_order(uint64_t seed);

// Runs `body` once per thread of the grid. Throws a device error for each error that the header
// lists, and whatever a thread throws.
void launch(const LaunchShape& shape, const std::function<void()>& body);

// Runs a library's work on the device's memory: not a kernel of ours.
void run_foreign(const std::function<void()>& work);

// In between, launches and work of this OS thread are recorded, not run.
void begin_recording();
// Returns functions that may be called as often as wanted.
std::vector<std::function<void()>> end_recording();
bool recording();

// Only kernels may call the rest.

struct Here {
  int thread;
  int threads;
  Grid block;
  Grid grid;
};

// The place of the running thread.
const Here& here();

// Waits for all threads of the block.
void block_sync(Place place);

// The slot where a lane shows kExchangeBytes bytes to its warp.
inline constexpr size_t kExchangeBytes = 64;
std::byte* exchange_slot();
// Waits for all lanes of the warp. Lane i's bytes are at i * kExchangeBytes of the result, until
// the exchange after the next.
const std::byte* exchange(Place place);

// The next piece of the block's shared memory, 16-byte aligned. All threads must ask for the same
// pieces in the same order, and for no more than the launch gave.
std::byte* take_shared(size_t bytes, Place place);

struct AsyncCopy {
  std::byte* to;
  const std::byte* from;
  int bytes;
  int valid_bytes;  // the rest becomes zero
};

// Overwrites the target with 0xff and remembers the copy in the lane's open group.
void async_copy(const AsyncCopy& copy);
// Closes the group.
void async_commit();
// Returns the copies of all groups but the newest `groups_left`. The caller carries them out.
std::span<const AsyncCopy> async_wait(int groups_left);

}  // namespace fp8kv::sim
