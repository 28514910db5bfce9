// Rows that pool blocks of tokens. Tokens before a step come from memory that earlier steps filled,
// so that results have the same bits however rows are cut into steps.
#include "kernels/blocks/activation.cuh"
#include "kernels/blocks/elements.cuh"
#include "kernels/launch_states.h"

namespace fp8kv::FP8KV_GPU {
namespace {

constexpr int kPoolThreads = 256;

// A thread's element of a sequence's rows, in each part.
template <typename T>
struct PoolColumn {
  const PoolArguments& args;
  int64_t width;  // parts * dim
  int64_t column;
  int first;     // row of the sequence
  float* state;  // of the sequence; null: there is none

  __device__ int64_t kept() const { return int64_t{args.block} * args.parts; }
  __device__ float* place(int64_t position) const {
    return state + position % kept() * 2 * width + column;
  }
  // The value, or with `gates` the gate, of the token `back` before a row in a part.
  __device__ float number(int row, int back, int part, bool gates) const {
    const int64_t offset = part * args.dim;
    if (row - back >= first) {
      const T* from = static_cast<const T*>(gates ? args.gates : args.values);
      return from[int64_t{row - back} * width + column + offset].value();
    }
    return place(args.rows.positions[row] - back)[(gates ? width : 0) + offset];
  }
  // The gate with its bias.
  __device__ float gate(int row, int back, int part) const {
    const int64_t at = (args.block - 1 - back % args.block) * width + part * args.dim + column;
    return number(row, back, part, true) + number_at(args.bias, args.bias_dtype, at);
  }
};

// One thread per sequence and element, for all rows.
template <typename T>
__global__ void pool_tokens_kernel(PoolArguments args) {
  after_previous();
  const int64_t item = static_cast<int64_t>(block_index().x) * kPoolThreads + thread_index();
  if (item >= args.dim * args.rows.n_seqs) return;
  const auto sequence = static_cast<int>(item / args.dim);
  const int begin = args.rows.indptr[sequence], end = args.rows.indptr[sequence + 1];
  const int64_t slot = args.rows.slots == nullptr ? -1 : args.rows.slots[sequence];
  PoolColumn<T> column{args, args.parts * args.dim, item % args.dim, begin, nullptr};
  if (slot >= 0) column.state = args.state + slot * column.kept() * 2 * column.width;
  T* out = static_cast<T*>(args.out) + column.column;
  for (int row = begin; row < end; ++row) {
    const int ended = args.rows.positions[row] + 1;
    if (ended % args.block != 0) {
      out[row * args.dim] = T::of(0.0f);
      continue;
    }
    const int kept = static_cast<int>(column.kept()), tokens = ended < kept ? ended : kept;
    const auto part_of = [&](int back) { return args.parts == 2 && back < args.block ? 1 : 0; };
    float most = -INFINITY, sum = 0.0f, weighed = 0.0f;
    for (int back = tokens; back-- > 0;) most = fmaxf(most, column.gate(row, back, part_of(back)));
    for (int back = tokens; back-- > 0;) {
      const float weight = exp_exact(column.gate(row, back, part_of(back)) - most);
      sum += weight;
      weighed = fused(weight, column.number(row, back, part_of(back), false), weighed);
    }
    out[row * args.dim] = T::of(weighed / sum);
  }
  if (slot < 0) return;
  const int kept = static_cast<int>(column.kept());
  for (int row = end - kept > begin ? end - kept : begin; row < end; ++row) {
    float* to = column.place(args.rows.positions[row]);
    for (int part = 0; part < args.parts; ++part) {
      to[part * args.dim] = column.number(row, 0, part, false);
      to[column.width + part * args.dim] = column.number(row, 0, part, true);
    }
  }
}

}  // namespace

void pool_tokens(Stream stream, DType dtype, const PoolArguments& arguments) {
  const int64_t items = arguments.dim * arguments.rows.n_seqs;
  with_compute_type(dtype, [&]<typename T>(T) {
    launch("pool_tokens", pool_tokens_kernel<T>,
           {static_cast<unsigned>((items + kPoolThreads - 1) / kPoolThreads)}, kPoolThreads, 0,
           stream, arguments);
  });
}

}  // namespace fp8kv::FP8KV_GPU
