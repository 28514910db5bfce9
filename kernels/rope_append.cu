// Everything between the projections and attention, in one pass over Q, K and V.
#include "core/histogram.h"
#include "kernels/launch.h"
#include "kernels/vec.cuh"

namespace fp8kv::FP8KV_GPU {
namespace {

constexpr int kThreads = 256;
// Rows whose magnitudes a block gathers before it adds them to global memory.
constexpr int kRowsPerBlock = 64;

enum Tensor { kQ, kK, kV };

// What one block of heads works on: heads are numbered Q's, then K's, then V's.
struct Head {
  int tensor;
  int index;    // within the tensor
  int n_heads;  // of the tensor
  int kv_head;
};

__device__ inline Head head_of(int number, const RopeArguments& arguments) {
  const int n_heads = arguments.n_heads;
  const int n_kv_heads = arguments.kv.n_kv_heads;
  if (number < n_heads) return {kQ, number, n_heads, number / (n_heads / n_kv_heads)};
  number -= n_heads;
  if (number < n_kv_heads) return {kK, number, n_kv_heads, number};
  return {kV, number - n_kv_heads, n_kv_heads, number - n_kv_heads};
}

__device__ inline float rounded(float x, DType dtype) {
  if (dtype == DType::f16) return f16_value(f16_code(x));
  if (dtype == DType::bf16) return bf16_to_float(bf16_from_float(x));
  return x;
}

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

// kCount pairs (i, i + head_dim / 2) of a row: rotated if Q or K, rounded, written back if Q or K,
// stored to the cache if K or V. `first` and `second` leave with the rounded values.
template <typename T, typename Cache, int kCount>
__device__ inline void process(const RopeArguments& arguments, const Head& head, int row, int pair,
                               float* first, float* second) {
  const int half = arguments.kv.head_dim / 2;
  T* x = static_cast<T*>(head.tensor == kQ   ? arguments.q
                         : head.tensor == kK ? arguments.k
                                             : arguments.v) +
         (static_cast<int64_t>(row) * head.n_heads + head.index) * arguments.kv.head_dim;
  auto low = load_vec<kCount>(x + pair);
  auto high = load_vec<kCount>(x + pair + half);
  const float* angles =
      arguments.rope + static_cast<int64_t>(arguments.rows.positions[row]) * arguments.kv.head_dim +
      pair;
  for (int j = 0; j < kCount; ++j) {
    float a = low.x[j].value(), b = high.x[j].value();
    if (head.tensor != kV) {
      const float cosine = angles[j], sine = angles[j + half];
      const float rotated = a * cosine - b * sine;
      b = b * cosine + a * sine;
      a = rotated;
    }
    first[j] = rounded(a, arguments.round_to);
    second[j] = rounded(b, arguments.round_to);
    low.x[j] = T::of(first[j]);
    high.x[j] = T::of(second[j]);
  }
  if (head.tensor != kV) {
    store_vec(x + pair, low);
    store_vec(x + pair + half, high);
  }
  if (head.tensor == kQ) return;
  const PagedKv& kv = arguments.kv;
  const int slot = arguments.rows.slots[row];
  const int64_t at = kv.offset(slot / kv.page_size, head.kv_head, slot % kv.page_size) + pair;
  auto* cache = static_cast<Cache*>(head.tensor == kK ? kv.k : kv.v) + at;
  float scale = 1.0f;
  if constexpr (kIsFp8<Cache>) scale = (head.tensor == kK ? kv.k_scale : kv.v_scale)[head.kv_head];
  Vec<Cache, kCount> codes_low, codes_high;
  for (int j = 0; j < kCount; ++j) {
    codes_low.x[j] = Cache::of(kIsFp8<Cache> ? first[j] / scale : first[j]);
    codes_high.x[j] = Cache::of(kIsFp8<Cache> ? second[j] / scale : second[j]);
  }
  store_vec(cache, codes_low);
  store_vec(cache + half, codes_high);
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
