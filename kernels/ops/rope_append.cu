// Everything between the projections and attention, in one pass over Q, K and V.
#include "core/numbers/histogram.h"
#include "kernels/blocks/reduce.cuh"
#include "kernels/blocks/rope.cuh"

namespace fp8kv::FP8KV_GPU {
namespace {

constexpr int kThreads = 256;
// Rows of a block. A block that observes gathers magnitudes before it adds them to global memory,
// bin by bin. So many rows share a block if enough rows remain to keep the device busy.
constexpr int kRowsPerBlock = 64;
constexpr int kManyRowsPerBlock = 256;
constexpr int kManyRows = 4096;

// Shared memory for one head's statistics, from zeroing it to adding it to the device's statistics.
struct Statistics {
  static constexpr uint32_t kInfinity = 0x7F800000u;

  uint32_t* bins = nullptr;  // [kMagnitudeBins]
  uint32_t* nonfinite = nullptr;

  static constexpr size_t kBytes = kMagnitudeBins * sizeof(uint32_t) + 16;

  __device__ explicit Statistics(Shared& shared)
      : bins(shared.take<uint32_t>(kMagnitudeBins)), nonfinite(shared.take<uint32_t>(1)) {
    for (int i = thread_index(); i < kMagnitudeBins; i += kThreads) bins[i] = 0;
    if (thread_index() == 0) *nonfinite = 0;
    block_sync();
  }

  // Counts kCount numbers, and raises the thread's own `amax`.
  template <int kCount>
  __device__ void observe(const float* x, uint32_t& amax) const {
    uint32_t magnitudes[kCount];
    uint32_t largest = 0;
    for (int j = 0; j < kCount; ++j) {
      magnitudes[j] = float_bits(x[j]) & 0x7FFFFFFFu;
      largest = magnitudes[j] > largest ? magnitudes[j] : largest;
    }
    if (largest < kInfinity) {
      for (int j = 0; j < kCount; ++j) shared_add(bins + magnitude_bin(magnitudes[j]), 1);
      amax = largest > amax ? largest : amax;
      return;
    }
    for (int j = 0; j < kCount; ++j) observe_any(magnitudes[j], amax);
  }

  __device__ void observe_any(uint32_t magnitude, uint32_t& amax) const {
    if (magnitude >= kInfinity) {
      shared_add(nonfinite, 1);
    } else {
      shared_add(bins + magnitude_bin(magnitude), 1);
      amax = magnitude > amax ? magnitude : amax;
    }
  }

  // `amax` is the thread's own.
  __device__ void add_to(uint64_t* words, uint32_t amax) const {
    raise_to_largest(amax, words + kMagnitudeAmax);
    block_sync();
    for (int i = thread_index(); i < kMagnitudeBins; i += kThreads) {
      if (bins[i] != 0) atomic_add(words + kMagnitudeFirstBin + i, bins[i]);
    }
    if (thread_index() == 0 && *nonfinite != 0) {
      atomic_add(words + kMagnitudeNonfinite, *nonfinite);
    }
  }
};

// Loads kCount floats. REQUIRES alignment to 16 bytes unless kCount is 1.
template <int kCount>
__device__ inline void load_floats(const float* from, float* to) {
  constexpr int kEach = kCount < 4 ? 1 : 4;
  for (int i = 0; i < kCount; i += kEach) {
    const auto part = load_vec<kEach>(from + i);
    for (int j = 0; j < kEach; ++j) to[i + j] = part.x[j];
  }
}

template <int kCount>
__device__ inline void rotate(const RopeArguments& arguments, const Head& head, int row, int pair,
                              float* first, float* second) {
  const float* angles = angles_of(arguments, head, row, pair);
  float cosines[kCount], sines[kCount];
  load_floats<kCount>(angles, cosines);
  load_floats<kCount>(angles + arguments.rotary_dim / 2, sines);
  for (int j = 0; j < kCount; ++j) {
    const Pair values = rotated({first[j], second[j]}, cosines[j], sines[j]);
    first[j] = values.first;
    second[j] = values.second;
  }
}

// Processes kCount pairs of a row: rotates Q and K, rounds, writes Q and K back, and stores K and V
// to the cache. `first` and `second` leave with the rounded values.
template <typename T, typename Cache, int kCount>
__device__ inline void process(const RopeArguments& arguments, const Head& head, int row, int pair,
                               float* first, float* second) {
  const PairPlace place(arguments, head_dim_of(arguments, head.tensor), pair);
  T* x = row_of<T>(arguments, head, row);
  auto low = load_vec<kCount>(x + place.first);
  auto high = load_vec<kCount>(x + place.second);
  for (int j = 0; j < kCount; ++j) {
    first[j] = low.x[j].value();
    second[j] = high.x[j].value();
  }
  if (head.tensor != kV && place.turns) rotate<kCount>(arguments, head, row, pair, first, second);
  round_all<kCount>(first, arguments.round_to);
  round_all<kCount>(second, arguments.round_to);
  if (head.tensor != kV) {
    for (int j = 0; j < kCount; ++j) {
      low.x[j] = T::of(first[j]);
      high.x[j] = T::of(second[j]);
    }
    store_vec(x + place.first, low);
    store_vec(x + place.second, high);
  }
  if constexpr (!std::is_same_v<Cache, AnyRow>) {
    if (head.tensor != kQ) {
      append<Cache, kCount>(arguments, head, arguments.rows.slots[row], place, first, second);
    }
  }
}

// One block per head and `block_rows` rows. Heads of the same rows follow one another, like in
// memory. Each thread takes kCount pairs at a time.
template <typename T, typename Cache, int kCount, bool kObserve>
__global__ void rope_append_kernel(RopeArguments arguments, int block_rows) {
  after_previous();
  Shared shared;
  const int n_heads = arguments.n_heads + 2 * arguments.kv.n_kv_heads;
  const int block = static_cast<int>(block_index().x);
  const Head head = head_of(block % n_heads, arguments);
  const int first_row = block / n_heads * block_rows;
  const int left = arguments.rows.n - first_row;
  const int end_row = first_row + (left < block_rows ? left : block_rows);
  // A thread steps on by kThreads times kCount pairs.
  const int per_row = head_dim_of(arguments, head.tensor) / 2 / kCount;
  if (per_row == 0) return;  // K of a latent that does not rotate
  const int row_step = kThreads / per_row, piece_step = kThreads % per_row;
  int row = first_row + thread_index() / per_row, piece = thread_index() % per_row;
  const auto each = [&](const auto& done) {
    while (row < end_row) {
      float first[kCount], second[kCount];
      process<T, Cache, kCount>(arguments, head, row, piece * kCount, first, second);
      done(first, second);
      row += row_step;
      piece += piece_step;
      if (piece >= per_row) {
        piece -= per_row;
        ++row;
      }
    }
  };
  if constexpr (kObserve) {
    const Statistics statistics(shared);
    uint32_t amax = 0;
    each([&](const float* first, const float* second) {
      statistics.observe<kCount>(first, amax);
      statistics.observe<kCount>(second, amax);
    });
    const int64_t place =
        static_cast<int64_t>(head.tensor) * arguments.kv.n_kv_heads + head.kv_head;
    statistics.add_to(arguments.magnitudes + place * kMagnitudeWords, amax);
  } else {
    each([](const float*, const float*) {});
  }
}

template <typename T, typename Cache, int kCount>
void run(Stream stream, const RopeArguments& arguments) {
  const bool observed = arguments.magnitudes != nullptr;
  const int block_rows =
      observed && arguments.rows.n >= kManyRows ? kManyRowsPerBlock : kRowsPerBlock;
  const int64_t tiles = (int64_t{arguments.rows.n} + block_rows - 1) / block_rows;
  const Grid grid{static_cast<unsigned>(tiles * (arguments.n_heads + 2 * arguments.kv.n_kv_heads))};
  if (observed) {
    launch("rope_append", rope_append_kernel<T, Cache, kCount, true>, grid, kThreads,
           Statistics::kBytes, stream, arguments, block_rows);
  } else {
    launch("rope_append", rope_append_kernel<T, Cache, kCount, false>, grid, kThreads, 0, stream,
           arguments, block_rows);
  }
}

}  // namespace

void rope_append(Stream stream, DType activations, const RopeArguments& arguments) {
  with_compute_type(activations, [&]<typename T>(T) {
    const auto with_cache = [&]<typename Cache>(Cache) {
      // Whether vectors of 8 elements fit each half of the rotated part, and of the rest.
      const bool vectors = arguments.pairs == RopePairs::halves &&
                           arguments.kv.head_dim % 16 == 0 && arguments.k_dim % 16 == 0 &&
                           arguments.v_dim % 16 == 0 && arguments.rotary_dim % 16 == 0 &&
                           in_vectors<T>(arguments.q, 8) && in_vectors<T>(arguments.k, 8) &&
                           in_vectors<T>(arguments.v, 8) && in_vectors<float>(arguments.rope, 8) &&
                           in_vectors<float>(arguments.q_rope, 8);
      vectors ? run<T, Cache, 16 / sizeof(T)>(stream, arguments)
              : run<T, Cache, 1>(stream, arguments);
    };
    // Rows of other sizes or formats are stored by a second kernel.
    const PagedKv& kv = arguments.kv;
    const bool one_size = kv.v_in_k > 0 || kv.v_dim() == kv.head_dim;
    const bool here = kv.in_elements() && one_size;
    here ? with_cache_type(kv, with_cache) : with_cache(AnyRow());
    if (!here && kv.n_kv_heads > 0) append_rows(stream, activations, arguments);
  });
}

}  // namespace fp8kv::FP8KV_GPU
