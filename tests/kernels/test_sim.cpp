// The simulator must catch what hardware leaves undefined. Each kernel here has one bug, or none.
#include <cstdint>
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"
#include "kernels/device/gpu.h"
#include "support/expect_error.h"

namespace fp8kv::FP8KV_GPU {
namespace {

constexpr int kThreads = 2 * kWarp;

struct InOrder {
  explicit InOrder(uint64_t seed) { sim::set_order(seed); }
  ~InOrder() { sim::set_order(0); }
};

// Each thread writes its number to shared memory, and reads that of its mirror image.
template <bool kBarrier>
void mirror_kernel(float* out) {
  Shared shared;
  float* numbers = shared.take<float>(kThreads);
  numbers[thread_index()] = static_cast<float>(thread_index());
  if (kBarrier) block_sync();
  out[block_index().x * kThreads + static_cast<unsigned>(thread_index())] =
      numbers[kThreads - 1 - thread_index()];
}

template <bool kBarrier>
bool mirrors(uint64_t seed) {
  const InOrder order(seed);
  std::vector<float> out(3 * kThreads);
  launch("mirror", mirror_kernel<kBarrier>, {3}, kThreads, kThreads * sizeof(float), Stream{},
         out.data());
  for (int i = 0; i < 3 * kThreads; ++i) {
    if (out[static_cast<size_t>(i)] != static_cast<float>(kThreads - 1 - i % kThreads))
      return false;
  }
  return true;
}

template <int kExtra>
void overrun_kernel() {
  Shared shared;
  auto* bytes = shared.take<unsigned char>(kThreads);
  shared.take<unsigned char>(kThreads);
  bytes[thread_index() + kExtra] = 1;
}

template <bool kWait>
void async_kernel(const float* in, float* out) {
  Shared shared;
  float* own = shared.take<float>(4 * kThreads) + 4 * thread_index();
  copy_async<16>(own, in + 4 * thread_index(), true);
  async_commit();
  if (kWait) async_wait<0>();
  for (int i = 0; i < 4; ++i) out[4 * thread_index() + i] = own[i];
  if (!kWait) async_wait<0>();
}

constexpr int kDivergentLine = __LINE__ + 2;
void divergent_kernel() {
  if (thread_index() < kWarp) block_sync();
}

constexpr int kPartialLine = __LINE__ + 2;
void partial_warp_kernel(float* out) {
  if (lane_index() < 3) out[0] = warp_xor(1.0f, 1);
}

constexpr int kTornLine = __LINE__ + 2;
void torn_warp_kernel(float* out) {
  if (lane_index() % 2 == 0) out[0] = warp_xor(1.0f, 2);
  if (lane_index() % 2 == 1) out[1] = warp_xor(1.0f, 2);
}

constexpr int kTwoBarriersLine = __LINE__ + 3;
void two_barriers_kernel() {
  if (thread_index() < kWarp) {
    block_sync();
  } else {
    block_sync();
  }
}

constexpr int kGreedyLine = __LINE__ + 3;
void greedy_kernel() {
  Shared shared;
  shared.take<float>(kThreads);
}

void forgetful_kernel(const float* in) {
  Shared shared;
  copy_async<16>(shared.take<float>(4 * kThreads) + 4 * thread_index(), in, true);
  async_commit();
}

void collective_kernel(float* sums, uint64_t* ballots, uint64_t* total) {
  float sum = static_cast<float>(lane_index());
  for (int mask = 1; mask < kWarp; mask *= 2) sum += warp_xor(sum, mask);
  sums[thread_index()] = sum + warp_from(static_cast<float>(lane_index()), 5);
  ballots[thread_index()] = warp_ballot(lane_index() % 3 == 0);
  atomic_add(total, static_cast<uint64_t>(thread_index()));
  atomic_max(total + 1, static_cast<uint64_t>(thread_index()));
}

template <typename Kernel, typename... Arguments>
std::string fault_of(const char* name, Kernel kernel, size_t shared_bytes, Arguments... arguments) {
  return test::error_of(
      [&] { launch(name, kernel, {1}, kThreads, shared_bytes, Stream{}, arguments...); },
      ErrorKind::device);
}

// Sanitizers end the program, so the mistake is made in another process.
template <typename Work>
int exit_code_of(Work work) {
  const pid_t child = fork();
  if (child == 0) {
    close(STDERR_FILENO);
    work();
    exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE("sim: a kernel with its barrier is right in every order, without it in none") {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    CHECK(mirrors<true>(seed));
#if !defined(FP8KV_TSAN)
    CHECK_FALSE(mirrors<false>(seed));
#endif
  }
#if defined(FP8KV_TSAN)
  constexpr int kRace = 66;  // ThreadSanitizer's exit code
  CHECK(exit_code_of([] { mirrors<false>(0); }) == kRace);
  CHECK(exit_code_of([] { mirrors<true>(0); }) == 0);
#endif
}

TEST_CASE("sim: an asynchronous copy is there once waited for, and not before") {
  std::vector<float> in(4 * kThreads, 1.5f), out(4 * kThreads);
  launch("async", async_kernel<true>, {1}, kThreads, out.size() * sizeof(float), Stream{},
         in.data(), out.data());
  CHECK(out == in);
  launch("async", async_kernel<false>, {1}, kThreads, out.size() * sizeof(float), Stream{},
         in.data(), out.data());
  for (const float x : out) CHECK(x != x);
}

TEST_CASE("sim: a write past a piece of shared memory is an error") {
  launch("overrun", overrun_kernel<0>, {1}, kThreads, 2 * kThreads, Stream{});
#if defined(FP8KV_ASAN)
  CHECK(exit_code_of([] {
          launch("overrun", overrun_kernel<1>, {1}, kThreads, 2 * kThreads, Stream{});
        }) == 1);
#else
  CHECK(fault_of("overrun", overrun_kernel<1>, 2 * kThreads) ==
        cat("kernel overrun, block 0 0 0: byte ", kThreads, " of a piece of ", kThreads,
            " bytes of shared memory was written"));
#endif
}

TEST_CASE("sim: a barrier that part of the block does not reach is an error with its line") {
  CHECK(fault_of("divergent", divergent_kernel, 0) ==
        cat("kernel divergent, block 0 0 0: test_sim.cpp:", kDivergentLine, ": barrier reached by ",
            kWarp, " of ", kThreads, " threads"));
  CHECK(fault_of("two", two_barriers_kernel, 0) ==
        cat("kernel two, block 0 0 0: threads wait at different barriers, test_sim.cpp:",
            kTwoBarriersLine, " and test_sim.cpp:", kTwoBarriersLine + 2));
}

TEST_CASE("sim: a warp operation that some lanes do not reach is an error with its line") {
  float out[2];
  CHECK(fault_of("partial", partial_warp_kernel, 0, &out[0]) ==
        cat("kernel partial, block 0 0 0: test_sim.cpp:", kPartialLine,
            ": warp operation reached by 3 of ", kWarp, " lanes"));
  CHECK(fault_of("torn", torn_warp_kernel, 0, &out[0]) ==
        cat("kernel torn, block 0 0 0: lanes of one warp wait at test_sim.cpp:", kTornLine,
            " and at test_sim.cpp:", kTornLine + 1));
}

TEST_CASE("sim: taking more shared memory than the launch gave is an error") {
  CHECK(fault_of("greedy", greedy_kernel, 16) ==
        cat("kernel greedy, block 0 0 0: test_sim.cpp:", kGreedyLine, ": takes ", 4 * kThreads,
            " bytes of shared memory, launched with 16"));
}

TEST_CASE("sim: an asynchronous copy nobody waits for is an error") {
  const float in[4] = {};
  CHECK(fault_of("forgetful", forgetful_kernel, 16 * kThreads, &in[0]) ==
        "kernel forgetful, block 0 0 0: thread 0 ends with asynchronous copies nobody waited for");
}

TEST_CASE("sim: an impossible launch is an error") {
  CHECK(test::error_of([] { launch("odd", divergent_kernel, {1}, kWarp + 1, 0, Stream{}); },
                       ErrorKind::device) == cat("kernel odd, block 0 0 0: launched with ",
                                                 kWarp + 1, " threads, not a multiple of ", kWarp,
                                                 " up to 1024"));
  const size_t most = sim::most_shared_bytes(kWarp);
  CHECK(test::error_of([&] { launch("large", divergent_kernel, {1}, kWarp, most + 1, Stream{}); },
                       ErrorKind::device) ==
        cat("kernel large, block 0 0 0: launched with ", most + 1,
            " bytes of shared memory, not every GPU has more than ", most));
}

TEST_CASE("sim: shuffles, ballots and atomics do what hardware does, in any order") {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const InOrder order(seed);
    std::vector<float> sums(kThreads);
    std::vector<uint64_t> ballots(kThreads);
    uint64_t total[2] = {};
    launch("collective", collective_kernel, {1}, kThreads, 0, Stream{}, sums.data(), ballots.data(),
           &total[0]);
    uint64_t every_third = 0;
    for (int i = 0; i < kWarp; i += 3) every_third |= uint64_t{1} << i;
    for (int i = 0; i < kThreads; ++i) {
      CHECK(sums[static_cast<size_t>(i)] == static_cast<float>(kWarp * (kWarp - 1) / 2 + 5));
      CHECK(ballots[static_cast<size_t>(i)] == every_third);
    }
    CHECK(total[0] == uint64_t{kThreads} * (kThreads - 1) / 2);
    CHECK(total[1] == kThreads - 1);
  }
}

}  // namespace
}  // namespace fp8kv::FP8KV_GPU
