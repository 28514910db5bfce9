// The way into attention for few rows, in one kernel: each warp has the two columns of Q, K or V
// that RoPE rotates into each other.
#include "kernels/blocks/fused.cuh"
#include "kernels/blocks/rope.cuh"

namespace fp8kv::FP8KV_GPU {
namespace {

// The columns of one pair of a head.
struct HeadPair {
  Head head;
  int pair;
  PairPlace place;

  __device__ HeadPair(int number, const RopeArguments& arguments)
      : head(head_of(number / (arguments.kv.head_dim / 2), arguments)),
        pair(number % (arguments.kv.head_dim / 2)),
        place(arguments, arguments.kv.head_dim, pair) {}

  // The head's first column within the product.
  __device__ int64_t column(const RopeArguments& arguments) const {
    return static_cast<int64_t>(head.index) * arguments.kv.head_dim;
  }

  template <typename T>
  __device__ ColumnPair<T> columns(const Products& products, const RopeArguments& arguments) const {
    const T* weight = static_cast<const T*>(products.each[head.tensor].weight) +
                      column(arguments) * products.in_dim;
    return {weight + place.first * products.in_dim, weight + place.second * products.in_dim};
  }
};

// A row's rotation, read before the products so that nothing waits for it after them.
struct Turn {
  float cosine = 1.0f;
  float sine = 0.0f;

  __device__ Turn(const RopeArguments& arguments, int row, const HeadPair& at) {
    if (row >= arguments.rows.n || !at.place.turns) return;
    const float* angles = angles_of(arguments, at.head, row, at.pair);
    cosine = angles[0];
    sine = angles[arguments.rotary_dim / 2];
  }
};

// Finishes one row's pair: rounds the products like `linear`, then applies rope_append.
template <typename T>
__device__ inline void finish(const RopeArguments& arguments, const HeadPair& at, int row,
                              const Turn& turn, T low, T high) {
  const bool is_value = at.head.tensor == kV;
  Pair values{low.value(), high.value()};
  if (!is_value && at.place.turns) values = rotated(values, turn.cosine, turn.sine);
  round_all<1>(&values.first, arguments.round_to);
  round_all<1>(&values.second, arguments.round_to);
  T* out = row_of<T>(arguments, at.head, row);
  out[at.place.first] = is_value ? low : T::of(values.first);
  out[at.place.second] = is_value ? high : T::of(values.second);
  if (at.head.tensor != kQ) {
    in_kernel_with_elements(arguments.kv.k_format, [&]<typename Cache>(Cache) {
      append<Cache, 1>(arguments, at.head, arguments.rows.slots[row], at.place, &values.first,
                       &values.second);
    });
  }
}

// Any number of blocks; a warp takes one pair of columns at a time.
template <typename T, int kRows>
__global__ void __launch_bounds__(kNormThreads, kFusedBlocks)
    project_append_kernel(NormedProducts normed, RopeArguments arguments, int pairs) {
  Shared shared;
  const Products& products = normed.products;
  int number = first_pair();
  if (number < pairs) {
    HeadPair(number, arguments).columns<T>(products, arguments).prefetch_start(products.in_dim);
  }
  after_previous();
  const T* rows = normalised_rows<T, kRows>(normed, shared);
  for (; number < pairs; number += pair_step()) {
    const HeadPair at(number, arguments);
    const Turn turn(arguments, lane_index(), at);
    float results[2];
    pair_products<T, kRows>(at.columns<T>(products, arguments), rows, products.in_dim, results);
    if (lane_index() < kRows) {
      const Product& product = products.each[at.head.tensor];
      const int64_t column = at.column(arguments);
      finish(arguments, at, lane_index(), turn,
             T::of(with_bias<T>(product, column + at.place.first, results[0])),
             T::of(with_bias<T>(product, column + at.place.second, results[1])));
    }
  }
}

}  // namespace

void project_append(Stream stream, DType dtype, const NormedProducts& normed,
                    const RopeArguments& arguments, int multiprocessors) {
  const int pairs = (arguments.n_heads + 2 * arguments.kv.n_kv_heads) * (arguments.kv.head_dim / 2);
  with_compute_type(dtype, [&]<typename T>(T) {
    void (*const kernels[])(NormedProducts, RopeArguments, int) = {
        project_append_kernel<T, 1>, project_append_kernel<T, 2>, project_append_kernel<T, 3>,
        project_append_kernel<T, 4>};
    launch_fused<T>("project_append", kernels, pairs, multiprocessors, stream, normed.products,
                    normed, arguments, pairs);
  });
}

}  // namespace fp8kv::FP8KV_GPU
