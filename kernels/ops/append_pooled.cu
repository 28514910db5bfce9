// Stores an indexer's keys: the last token of each block stores the block's key.
#include "kernels/blocks/elements.cuh"
#include "kernels/blocks/reduce.cuh"
#include "kernels/blocks/rope.cuh"
#include "kernels/blocks/sequence.cuh"
#include "kernels/launch_attention.h"

namespace fp8kv::FP8KV_GPU {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / kWarp;

// One block per row.
template <typename T>
__global__ void append_pooled_kernel(PooledArguments args) {
  after_previous();
  Shared shared;
  const PagedKv& keys = args.keys;
  const int dim = keys.head_dim, row = static_cast<int>(block_index().x);
  const int position = args.rows.positions[row], slot = args.rows.slots[row];
  const T* own = static_cast<const T*>(args.k) + int64_t{row} * dim;
  T* to = static_cast<T*>(keys.k) + keys.offset(slot / keys.page_size, 0, slot % keys.page_size);
  if ((position + 1) % args.block != 0) {
    for (int i = thread_index(); i < dim; i += kThreads) to[i] = own[i];
    return;
  }
  float* key = shared.take<float>(dim);
  const int sequence = sequence_of(args.rows, row);
  const int32_t* pages =
      args.rows.page_table + static_cast<int64_t>(sequence) * args.rows.max_pages;
  const int first = position + 1 - args.block;
  const int before = row - args.rows.indptr[sequence];  // rows of this step before the row
  float squares[1] = {};
  for (int i = thread_index(); i < dim; i += kThreads) {
    float sum = 0.0f;
    for (int at = first; at <= position; ++at) {
      const int back = position - at;
      const T* from = own - int64_t{back} * dim;
      if (back > before) {
        from = static_cast<const T*>(keys.k) +
               keys.offset(pages[at / keys.page_size], 0, at % keys.page_size);
      }
      sum += from[i].value();
    }
    key[i] = T::of(sum / static_cast<float>(args.block)).value();
    squares[0] = fused(key[i], key[i], squares[0]);
  }
  block_sums<kWarps>(squares, shared.take<float>(kWarps));
  const float factor = rsqrt_exact(squares[0] / static_cast<float>(dim) + args.eps);
  for (int i = thread_index(); i < dim; i += kThreads) {
    const float weight = number_at(args.weight, args.weight_dtype, i) + args.weight_offset;
    key[i] = T::of(key[i] * factor * weight).value();
  }
  block_sync();
  const float* angles = args.rope + static_cast<int64_t>(first) * args.rotary_dim;
  const int half = args.rotary_dim / 2;
  for (int i = thread_index(); i < half; i += kThreads) {
    const Pair turned = rotated({key[i], key[i + half]}, angles[i], angles[i + half]);
    to[i] = T::of(turned.first);
    to[i + half] = T::of(turned.second);
  }
  for (int i = args.rotary_dim + thread_index(); i < dim; i += kThreads) to[i] = T::of(key[i]);
}

}  // namespace

void append_pooled(Stream stream, DType activations, const PooledArguments& arguments) {
  // Each piece of shared memory takes whole 16 bytes.
  const auto whole = [](size_t floats) { return (floats + 3) / 4 * 4; };
  const size_t floats = whole(static_cast<size_t>(arguments.keys.head_dim)) + whole(kWarps);
  with_compute_type(activations, [&]<typename T>(T) {
    launch("append_pooled", append_pooled_kernel<T>, {static_cast<unsigned>(arguments.rows.n)},
           kThreads, floats * sizeof(float), stream, arguments);
  });
}

}  // namespace fp8kv::FP8KV_GPU
