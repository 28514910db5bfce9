// gpu.h for the simulator. FP8KV_SIM_WARP is 32 or 64. With 32 it has NVIDIA's matrix instructions
// and asynchronous copies, with 64 the instructions of AMD's CDNA.
#pragma once

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <tuple>

#include "backend/transfers.h"
#include "base/error.h"
#include "kernels/device/faults.h"
#include "kernels/sim/sim.h"
#include "kernels/sim/sim_faults.h"
#include "kernels/sim/sim_queues.h"

#define __global__
#define __device__
#define __launch_bounds__(...)
#define __restrict__ __restrict

namespace fp8kv::FP8KV_GPU {

inline constexpr int kWarp = FP8KV_SIM_WARP;
static_assert(kWarp == 32 || kWarp == 64);
inline constexpr bool kHasAsync = kWarp == 32;
inline constexpr int kLoneWarps = kHasAsync ? 8 : 0;  // so that tests meet both kinds of blocks
inline constexpr bool kHardwareFp8 = kWarp == 32;
// Pretends to be gfx90a, to run its special code. Products here do not flush subnormals.
inline constexpr bool kProductsFlush = kWarp == 64;
inline constexpr size_t kMostSharedBytes = sim::most_shared_bytes(kWarp);

using StreamHandle = sim::Queues*;

// The queue of work; without a handle, work runs at once, on no device.
struct Stream {
  StreamHandle handle = nullptr;
  sim::Faults* faults = nullptr;
  Pending* pending = nullptr;
};
using Grid = sim::Grid;

// The place of an operation in a kernel, for messages.
struct Here : sim::Place {
  Here(const char* in_file = __builtin_FILE(), int at_line = __builtin_LINE())
      : Place{in_file, at_line} {}
};

inline int thread_index() {
  return sim::here().thread;
}
inline int lane_index() {
  return thread_index() % kWarp;
}
inline int warp_index() {
  return thread_index() / kWarp;
}
inline const Grid& block_index() {
  return sim::here().block;
}
inline const Grid& grid_size() {
  return sim::here().grid;
}
inline void block_sync(Here here = {}) {
  sim::block_sync(here);
}

// The values that all lanes of the warp showed, in the order of lanes.
template <typename T>
class Shown {
 public:
  Shown(const T& mine, Here here) {
    static_assert(sizeof(T) <= sim::kExchangeBytes);
    std::memcpy(sim::exchange_slot(), &mine, sizeof mine);
    slots_ = sim::exchange(here);
  }
  // Valid until the exchange after the next.
  const T& operator[](int lane) const {
    return *reinterpret_cast<const T*>(slots_ +
                                       static_cast<size_t>(lane % kWarp) * sim::kExchangeBytes);
  }

 private:
  const std::byte* slots_;
};

inline void warp_sync(Here here = {}) {
  Shown<char>(0, here);
}
template <typename T>
T warp_xor(T value, int mask, Here here = {}) {
  return Shown<T>(value, here)[lane_index() ^ mask];
}
template <typename T>
T warp_from(T value, int lane, Here here = {}) {
  return Shown<T>(value, here)[lane];
}
// The first lane's value, as on the hardware. Lanes that disagree then get a wrong value.
inline int warp_uniform(int value, Here here = {}) {
  return warp_from(value, 0, here);
}
inline uint64_t warp_ballot(bool predicate, Here here = {}) {
  const Shown<bool> shown(predicate, here);
  uint64_t bits = 0;
  for (int lane = 0; lane < kWarp; ++lane) bits |= static_cast<uint64_t>(shown[lane]) << lane;
  return bits;
}

inline void atomic_max(uint64_t* to, uint64_t value) {
  const std::atomic_ref<uint64_t> ref(*to);
  uint64_t seen = ref.load(std::memory_order_relaxed);
  while (seen < value && !ref.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}
inline void atomic_add(uint64_t* to, uint64_t value) {
  std::atomic_ref<uint64_t>(*to).fetch_add(value, std::memory_order_relaxed);
}
inline void shared_add(uint32_t* to, uint32_t value) {
  std::atomic_ref<uint32_t>(*to).fetch_add(value, std::memory_order_relaxed);
}

class Shared {
 public:
  template <typename T>
  T* take(size_t count, Here here = {}) {
    return reinterpret_cast<T*>(sim::take_shared(count * sizeof(T), here));
  }
};

inline float fused(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
inline float exp2_fast(float x) {
  return std::exp2(x);
}
inline float reciprocal_fast(float x) {
  return 1.0f / x;
}
inline float exp_exact(float x) {
  return std::exp(x);
}
inline float tanh_exact(float x) {
  return std::tanh(x);
}
inline float log1p_exact(float x) {
  return std::log1p(x);
}
inline float erf_exact(float x) {
  return std::erf(x);
}
inline float rsqrt_exact(float x) {
  return 1.0f / std::sqrt(x);
}
inline uint16_t f16_code(float x) {
  return f16_from_float(x);
}
inline uint16_t bf16_code(float x) {
  return bf16_from_float(x);
}
inline uint32_t bf16_codes(float first, float second) {
  return static_cast<uint32_t>(bf16_code(first)) | static_cast<uint32_t>(bf16_code(second)) << 16;
}
inline float f16_value(uint16_t code) {
  return f16_to_float(code);
}

template <unsigned kSelect>
uint32_t select_bytes(uint32_t low, uint32_t high) {
  const uint64_t both = static_cast<uint64_t>(high) << 32 | low;
  uint32_t out = 0;
  for (unsigned i = 0; i < 4; ++i) {
    out |= static_cast<uint32_t>(both >> (8 * (kSelect >> (4 * i) & 7u)) & 0xFFu) << (8 * i);
  }
  return out;
}

template <int kExponent>
uint32_t scaled_pair(uint32_t pair) {
  const auto scaled = [](uint32_t code) -> uint32_t {
    return f16_from_float(f16_to_float(static_cast<uint16_t>(code)) * (1 << kExponent));
  };
  return scaled(pair & 0xFFFFu) | scaled(pair >> 16) << 16;
}

// Stands for cvt.rn.f16x2.e4m3x2.
inline void convert_e4m3(uint32_t codes, uint32_t* pairs) {
  for (int i = 0; i < 2; ++i) {
    const auto code = [&](int j) {
      const auto byte = static_cast<uint8_t>(codes >> (8 * j));
      return static_cast<uint32_t>(f16_from_float(fp8_decode<Fp8Format::e4m3fn>(byte)));
    };
    pairs[i] = code(2 * i) | code(2 * i + 1) << 16;
  }
}

// Stands for cvt.rn.satfinite.
template <Fp8Format F>
uint16_t encode_fp8(float first, float second) {
  return static_cast<uint16_t>(fp8_encode<F>(first) | fp8_encode<F>(second) << 8);
}

inline void after_previous() {}

// Reads a byte, so that an address outside of all memory is detected.
inline void prefetch(const void* global) {
  static_cast<void>(*static_cast<const volatile char*>(global));
}

template <int kBytes, bool kLine = false>
void copy_async(void* shared, const void* global, bool valid) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16);
  sim::async_copy({static_cast<std::byte*>(shared), static_cast<const std::byte*>(global), kBytes,
                   valid ? kBytes : 0});
}
inline void async_commit() {
  sim::async_commit();
}
template <int kGroupsLeft>
void async_wait() {
  for (const sim::AsyncCopy& copy : sim::async_wait(kGroupsLeft)) {
    std::memset(copy.to, 0, static_cast<size_t>(copy.bytes));
    std::memcpy(copy.to, copy.from, static_cast<size_t>(copy.valid_bytes));
  }
}

// One lane's part of a matrix instruction, as floats.
struct MmaLane {
  float a[8];
  float b[4];
};

// See gpu_cuda.h and gpu_hip.h: kWarp decides which of the two this is.
struct Mma {
  static constexpr int kCols = kWarp == 32 ? 8 : 16;
  static constexpr int kRowsPerLane = kWarp == 32 ? 2 : 1;
  static constexpr int kLaneCols = kWarp == 32 ? 2 : 1;
  static constexpr int kColStride = kWarp == 32 ? 4 : 16;
  static constexpr int kGroupStride = kWarp == 32 ? 1 : 16;

  static int row(int lane) { return kWarp == 32 ? lane / 4 : lane % 16; }
  static int group(int lane) { return kWarp == 32 ? lane % 4 : lane / 16; }
  static int acc_row(int lane, int i) {
    return kWarp == 32 ? lane / 4 + 8 * (i / 2) : 4 * (lane / 16) + i;
  }
  static int acc_col(int lane, int i) { return kWarp == 32 ? 2 * (lane % 4) + i % 2 : lane % 16; }
  static int depth(int lane, int i) {
    return kWarp == 32 ? 2 * (lane % 4) + i % 2 + 8 * (i / 2) : 4 * (lane / 16) + i;
  }

  static int lane_of_col(int col) { return kWarp == 32 ? 4 * col : col; }

  template <typename T>
  static void run(float* acc, const uint32_t* a, const uint32_t* b, Here here = {}) {
    MmaLane mine{};
    for (int i = 0; i < 4 * kRowsPerLane; ++i) mine.a[i] = value<T>(a[i / 2] >> (16 * (i % 2)));
    for (int i = 0; i < 4; ++i) mine.b[i] = value<T>(b[i / 2] >> (16 * (i % 2)));
    const Shown<MmaLane> shown(mine, here);
    const int lane = lane_index();
    for (int i = 0; i < 4; ++i) {
      const int r = acc_row(lane, i);
      for (int g = 0; g < 4; ++g) {
        const int rows = 16 / kRowsPerLane;
        const MmaLane& from_a = shown[lane_of(r % rows, g)];
        const MmaLane& from_b = shown[lane_of(acc_col(lane, i), g)];
        for (int d = 0; d < 4; ++d) {
          acc[i] += from_a.a[4 * (r / rows) + d] * from_b.b[d];
        }
      }
    }
  }

  static constexpr bool kHasLoads = kWarp == 32;
  template <bool kTransposed>
  static void load(const unsigned char* from, int pitch, uint32_t* a, Here here = {}) {
    const Shown<const unsigned char*> shown(from, here);  // all lanes, of one place
    const auto at = [&](int row, int depth) -> uint32_t {
      const int along = kTransposed ? row : depth, across = kTransposed ? depth : row;
      return *reinterpret_cast<const uint16_t*>(shown[0] + across * pitch + along * 2);
    };
    for (int i = 0; i < 4; ++i) {
      const int row = lane_index() / 4 + 8 * (i / 2), depth = lane_index() % 4 * 2 + 8 * (i % 2);
      a[i] = at(row, depth) | at(row, depth + 1) << 16;
    }
  }

  // On AMD, a result already has the layout of an operand.
  static void scores_to_operand(const uint32_t* scores, uint32_t* b, Here here = {}) {
    if constexpr (kWarp == 64) {
      b[0] = scores[0];
      b[1] = scores[1];
    } else {
      const int row = lane_index() / 4, col = lane_index() % 4 * 2;
      for (int i = 0; i < 2; ++i) {  // movmatrix.trans of 8 x 8
        const Shown<uint32_t> shown(scores[i], here);
        const auto at = [&](int r, int c) {
          return shown[4 * r + c / 2] >> (16 * (c % 2)) & 0xFFFFu;
        };
        b[i] = at(col, row) | at(col + 1, row) << 16;
      }
    }
  }

 private:
  static int lane_of(int row, int group) {
    return kWarp == 32 ? 4 * row + group : 16 * group + row;
  }
  template <typename T>
  static float value(uint32_t code) {
    return T{static_cast<uint16_t>(code)}.value();
  }
};

// Gives work to the queue of ops, in order with its other work; `name` is the op's.
void give(const Stream& stream, const char* name, const std::function<void()>& work);

template <typename... Parameters, typename... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), Grid grid, int threads,
            size_t shared_bytes, Stream stream, Arguments&&... arguments) {
  const std::tuple<Parameters...> values(static_cast<Parameters>(arguments)...);
  give(stream, name, [=] {
    sim::launch({name, grid, threads, kWarp, shared_bytes},
                [kernel, values] { std::apply(kernel, values); });
  });
}

template <typename Work>
void submit(const char* name, Stream stream, const Work& work) {
  give(stream, name, [work] { sim::run_foreign(work); });
}

inline bool has_gemm_library() {
  return false;
}

}  // namespace fp8kv::FP8KV_GPU
