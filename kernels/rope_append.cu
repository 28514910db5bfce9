// Everything between the projections and attention, in one pass over Q, K and V.
#include "core/histogram.h"
#include "kernels/rope.cuh"

namespace fp8kv::FP8KV_GPU {
namespace {

constexpr int kThreads = 256;
// Rows whose magnitudes a block gathers before it adds them to global memory.
constexpr int kRowsPerBlock = 64;

// Counts one magnitude; `words` as in core/histogram.h but 32 bits wide, in shared memory.
__device__ inline void observe(float x, uint32_t* bins, uint32_t* nonfinite, uint32_t& amax) {
  const uint32_t magnitude = float_bits(x) & 0x7FFFFFFFu;
  if (magnitude >= 0x7F800000u) {
    shared_add(nonfinite, 1);
    return;
  }
  shared_add(bins + magnitude_bin(magnitude), 1);
  amax = magnitude > amax ? magnitude : amax;
}

// Shared memory of one head's statistics, from the moment it is zero to the moment it is added to
// what the device has.
struct Statistics {
  uint32_t* bins = nullptr;  // [kMagnitudeBins]
  uint32_t* nonfinite = nullptr;

  static constexpr size_t kBytes = kMagnitudeBins * sizeof(uint32_t) + 16;

  __device__ explicit Statistics(Shared& shared)
      : bins(shared.take<uint32_t>(kMagnitudeBins)), nonfinite(shared.take<uint32_t>(1)) {
    for (int i = thread_index(); i < kMagnitudeBins; i += kThreads) bins[i] = 0;
    if (thread_index() == 0) *nonfinite = 0;
    block_sync();
  }

  // `amax` is the thread's own.
  __device__ void add_to(uint64_t* words, uint32_t amax) const {
    for (int mask = kWarp / 2; mask > 0; mask /= 2) {
      const uint32_t other = warp_xor(amax, mask);
      amax = other > amax ? other : amax;
    }
    if (lane_index() == 0) atomic_max(words + kMagnitudeAmax, amax);
    block_sync();
    for (int i = thread_index(); i < kMagnitudeBins; i += kThreads) {
      if (bins[i] != 0) atomic_add(words + kMagnitudeFirstBin + i, bins[i]);
    }
    if (thread_index() == 0 && *nonfinite != 0) {
      atomic_add(words + kMagnitudeNonfinite, *nonfinite);
    }
  }
};

// kCount pairs of a row: rotated if Q or K, rounded, written back if Q or K, stored to the cache if
// K or V. `first` and `second` leave with the rounded values.
template <typename T, typename Cache, int kCount>
__device__ inline void process(const RopeArguments& arguments, const Head& head, int row, int pair,
                               float* first, float* second) {
  const int half = arguments.kv.head_dim / 2;
  T* x = row_of<T>(arguments, head, row) + pair;
  auto low = load_vec<kCount>(x);
  auto high = load_vec<kCount>(x + half);
  const float* angles =
      arguments.rope + static_cast<int64_t>(arguments.rows.positions[row]) * arguments.kv.head_dim +
      pair;
  for (int j = 0; j < kCount; ++j) {
    Pair values{low.x[j].value(), high.x[j].value()};
    if (head.tensor != kV) values = rotated(values, angles[j], angles[j + half]);
    first[j] = rounded(values.first, arguments.round_to);
    second[j] = rounded(values.second, arguments.round_to);
    low.x[j] = T::of(first[j]);
    high.x[j] = T::of(second[j]);
  }
  if (head.tensor != kV) {
    store_vec(x, low);
    store_vec(x + half, high);
  }
  if (head.tensor != kQ) {
    append<Cache, kCount>(arguments, head, arguments.rows.slots[row], pair, first, second);
  }
}

// One block per head (y) and kRowsPerBlock rows (x). Each thread takes kCount pairs at a time.
template <typename T, typename Cache, int kCount, bool kObserve>
__global__ void rope_append_kernel(RopeArguments arguments) {
  Shared shared;
  const Head head = head_of(static_cast<int>(block_index().y), arguments);
  const int per_row = arguments.kv.head_dim / 2 / kCount;
  const int first_row = static_cast<int>(block_index().x) * kRowsPerBlock;
  const int rows =
      arguments.rows.n - first_row < kRowsPerBlock ? arguments.rows.n - first_row : kRowsPerBlock;
  float first[kCount], second[kCount];
  if constexpr (kObserve) {
    const Statistics statistics(shared);
    uint32_t amax = 0;
    for (int i = thread_index(); i < rows * per_row; i += kThreads) {
      process<T, Cache, kCount>(arguments, head, first_row + i / per_row, i % per_row * kCount,
                                first, second);
      for (int j = 0; j < kCount; ++j) {
        observe(first[j], statistics.bins, statistics.nonfinite, amax);
        observe(second[j], statistics.bins, statistics.nonfinite, amax);
      }
    }
    const int64_t place =
        static_cast<int64_t>(head.tensor) * arguments.kv.n_kv_heads + head.kv_head;
    statistics.add_to(arguments.magnitudes + place * kMagnitudeWords, amax);
  } else {
    for (int i = thread_index(); i < rows * per_row; i += kThreads) {
      process<T, Cache, kCount>(arguments, head, first_row + i / per_row, i % per_row * kCount,
                                first, second);
    }
  }
}

template <typename T, typename Cache, int kCount>
void run(Stream stream, const RopeArguments& arguments) {
  const unsigned tiles =
      (static_cast<unsigned>(arguments.rows.n) + kRowsPerBlock - 1) / kRowsPerBlock;
  const Grid grid{tiles, static_cast<unsigned>(arguments.n_heads + 2 * arguments.kv.n_kv_heads)};
  if (arguments.magnitudes != nullptr) {
    launch("rope_append", rope_append_kernel<T, Cache, kCount, true>, grid, kThreads,
           Statistics::kBytes, stream, arguments);
  } else {
    launch("rope_append", rope_append_kernel<T, Cache, kCount, false>, grid, kThreads, 0, stream,
           arguments);
  }
}

}  // namespace

void rope_append(Stream stream, DType activations, const RopeArguments& arguments) {
  with_compute_type(activations, [&]<typename T>(T) {
    with_cache_type(arguments.kv.dtype, [&]<typename Cache>(Cache) {
      // Vectors of 8 elements in each half of a head.
      const bool vectors = arguments.kv.head_dim % 16 == 0 && in_vectors<T>(arguments.q, 8) &&
                           in_vectors<T>(arguments.k, 8) && in_vectors<T>(arguments.v, 8);
      vectors ? run<T, Cache, 16 / sizeof(T)>(stream, arguments)
              : run<T, Cache, 1>(stream, arguments);
    });
  });
}

}  // namespace fp8kv::FP8KV_GPU
