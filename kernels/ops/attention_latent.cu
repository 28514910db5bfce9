// Attention over latents: one KV head that all heads read, of which V is the last part. One warp
// per row and query head; nothing is rounded between the cache and the output.
#include "kernels/blocks/latent_blocks.cuh"
#include "kernels/blocks/reduce.cuh"
#include "kernels/blocks/sequence.cuh"
#include "kernels/blocks/vec.cuh"
#include "kernels/launch.h"

namespace fp8kv::FP8KV_GPU {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarp;
constexpr int kDimsPerLane = kMostLatentDim / kWarp;

// One token of the pool of K or V; in blocks, of K.
template <typename Cache>
struct Token {
  const Cache* x;
  __device__ Token(const PagedKv& kv, const void* pool, int page, int in_page)
      : x(static_cast<const Cache*>(pool) + kv.offset(page, 0, in_page)) {}
  __device__ float value(int d) const { return x[d].value(); }
};

template <>
struct Token<InBlocks> {
  const uint8_t* x;
  LatentBlocks blocks;
  __device__ Token(const PagedKv& kv, const void* /*pool*/, int page, int in_page)
      : x(block_token(kv, page, in_page)), blocks(kv.blocks()) {}
  __device__ float value(int d) const { return block_value(x, blocks, d); }
};

// One warp per (row, head), numbered row by row.
template <typename T, typename Cache>
__global__ void attention_latent_kernel(AttentionArguments arguments) {
  after_previous();
  Shared shared;
  const PagedKv& kv = arguments.kv;
  const int head_dim = kv.head_dim, v_dim = kv.v_in_k;
  const int first_v = kInBlocks<Cache> ? head_dim - v_dim : 0;
  float* all_queries = shared.take<float>(kWarps * head_dim);
  float* all_weights = shared.take<float>(kThreads);
  const int64_t item = static_cast<int64_t>(block_index().x) * kWarps + warp_index();
  if (item >= static_cast<int64_t>(arguments.rows.n) * arguments.n_heads) return;
  float* query = all_queries + warp_index() * head_dim;
  float* weights = all_weights + warp_index() * kWarp;

  const auto row = static_cast<int>(item / arguments.n_heads);
  const int32_t* pages =
      arguments.rows.page_table +
      static_cast<int64_t>(sequence_of(arguments.rows, row)) * arguments.rows.max_pages;
  const int end = arguments.rows.positions[row] + 1;
  const int lane = lane_index();
  const T* q = static_cast<const T*>(arguments.q) + item * head_dim;
  for (int d = lane; d < head_dim; d += kWarp) query[d] = q[d].value();
  warp_sync();

  constexpr bool kScaled = kIsFp8<Cache> && !kInBlocks<Cache>;
  const float k_scale = kScaled ? kv.k_scale[0] : 1.0f;
  const float v_scale = kScaled ? kv.v_scale[0] : 1.0f;
  float acc[kDimsPerLane] = {};
  float sum = 0.0f, max = -INFINITY;
  for (int begin = 0; begin < end; begin += kWarp) {
    // Lane i has the weight of token begin + i.
    const int token = begin + lane;
    float score = -INFINITY;
    if (token < end) {
      const Token<Cache> k(kv, kv.k, pages[token / kv.page_size], token % kv.page_size);
      score = 0.0f;
      for (int d = 0; d < head_dim; ++d) score = fused(query[d], k.value(d), score);
      score *= k_scale * arguments.scale;
    }
    const float new_max = fmaxf(max, warp_max(score));
    const float weight = exp_exact(score - new_max);
    const float correction = exp_exact(max - new_max);
    max = new_max;
    sum = sum * correction + warp_sum(weight);
    weights[lane] = weight;
    warp_sync();
    const int count = end - begin < kWarp ? end - begin : kWarp;
    for (int j = 0; j < kDimsPerLane; ++j) acc[j] *= correction;
    for (int i = 0; i < count; ++i) {
      const int at = begin + i;
      const Token<Cache> v(kv, kv.v, pages[at / kv.page_size], at % kv.page_size);
      for (int j = 0; j < kDimsPerLane; ++j) {
        const int d = lane + j * kWarp;
        if (d < v_dim) acc[j] = fused(weights[i], v.value(first_v + d), acc[j]);
      }
    }
    warp_sync();
  }
  T* out = static_cast<T*>(arguments.out) + item * v_dim;
  for (int j = 0; j < kDimsPerLane; ++j) {
    const int d = lane + j * kWarp;
    if (d < v_dim) out[d] = T::of(acc[j] / sum * v_scale);
  }
}

}  // namespace

void attention_latent(Stream stream, DType activations, const AttentionArguments& arguments) {
  with_compute_type(activations, [&]<typename T>(T) {
    const auto with_cache = [&]<typename Cache>(Cache) {
      const int64_t items = static_cast<int64_t>(arguments.rows.n) * arguments.n_heads;
      const size_t floats = static_cast<size_t>(kWarps * arguments.kv.head_dim + kThreads);
      launch("attention", attention_latent_kernel<T, Cache>,
             {static_cast<unsigned>((items + kWarps - 1) / kWarps)}, kThreads,
             floats * sizeof(float), stream, arguments);
    };
    arguments.kv.latent_blocks ? with_cache(InBlocks{})
                               : with_cache_type(arguments.kv.dtype, with_cache);
  });
}

}  // namespace fp8kv::FP8KV_GPU
