// Attention to tokens in a window, whose K is their V, and to rows that pool blocks of tokens,
// which stand in V's place. One warp per row and query head; nothing is rounded between the cache
// and the output. It is written for being right: each warp reads all rows that it sees by itself.
#include "kernels/blocks/kv_rows.cuh"
#include "kernels/blocks/reduce.cuh"
#include "kernels/blocks/sequence.cuh"
#include "kernels/launch_attention.h"

namespace fp8kv::FP8KV_GPU {
namespace {

constexpr int kPoolWarps = 4;
constexpr int kPoolThreads = kPoolWarps * kWarp;
constexpr int kElementsPerLane = kMostHeadDim / kWarp;

// The places that a row sees: first pooled rows, then the tokens of its window.
struct PoolPlaces {
  const int32_t* chosen;  // blocks; null: all that have ended
  int block;
  int ended;  // blocks before the end of the row
  int pools;  // places of pooled rows
  int first;  // token of the window
  int end;    // of all places

  __device__ bool is_token(int place) const { return place >= pools; }
  // The position whose slot has the row; -1: there is none.
  __device__ int position(int place) const {
    if (is_token(place)) return first + place - pools;
    const int number = chosen != nullptr ? chosen[place] : place;
    return number >= 0 && number < ended ? (number + 1) * block - 1 : -1;
  }
};

__device__ inline PoolPlaces pool_places(const AttentionArguments& arguments, int row) {
  const ScoreOptions& options = arguments.scores;
  const int position = arguments.rows.positions[row];
  const Visible visible = visible_from(position, arguments.window);
  PoolPlaces places{nullptr, options.pool, (position + 1) / options.pool, 0, visible.begin, 0};
  places.pools = places.ended;
  if (options.chosen != nullptr) {
    places.chosen = options.chosen + static_cast<int64_t>(row) * options.chosen_count;
    places.pools = options.chosen_count;
  }
  places.end = places.pools + visible.end - visible.begin;
  return places;
}

template <typename T, typename Cache>
__global__ void attention_pools_kernel(AttentionArguments arguments) {
  after_previous();
  const PagedKv& kv = arguments.kv;
  const int64_t item = static_cast<int64_t>(block_index().x) * kPoolWarps + warp_index();
  if (item >= static_cast<int64_t>(arguments.rows.n) * arguments.n_heads) return;
  const auto row = static_cast<int>(item / arguments.n_heads);
  const auto head = static_cast<int>(item % arguments.n_heads);
  const int dim = kv.head_dim, lane = lane_index();
  const int32_t* pages =
      arguments.rows.page_table +
      static_cast<int64_t>(sequence_of(arguments.rows, row)) * arguments.rows.max_pages;
  const PoolPlaces places = pool_places(arguments, row);
  const T* q = static_cast<const T*>(arguments.q) + item * dim;
  float query[kElementsPerLane], acc[kElementsPerLane] = {};
  for (int j = 0; j < kElementsPerLane; ++j) {
    const int d = lane + j * kWarp;
    query[j] = d < dim ? q[d].value() : 0.0f;
  }
  const float k_scale = stored_scale<Cache>(kv.k_scale, 0);
  const float v_scale = stored_scale<Cache>(kv.v_scale, 0);
  float sum = 0.0f, max = -INFINITY;
  if (arguments.scores.sinks != nullptr) {
    max = number_at(arguments.scores.sinks, arguments.scores.sinks_dtype, head);
    sum = 1.0f;
  }
  for (int place = 0; place < places.end; ++place) {
    const int at = places.position(place);
    if (at < 0) continue;
    const bool token = places.is_token(place);
    const int64_t number = kv.row(pages[at / kv.page_size], 0, at % kv.page_size);
    const KeyRow<Cache> k(kv, number);
    const ValueRow<Cache> v(kv, number, dim);
    float values[kElementsPerLane], part = 0.0f;
    for (int j = 0; j < kElementsPerLane; ++j) {
      const int d = lane + j * kWarp;
      values[j] = d >= dim ? 0.0f : token ? k.value(d) * k_scale : v.value(d) * v_scale;
      part = fused(query[j], values[j], part);
    }
    const float score = warp_sum(part) * arguments.scale;
    const float new_max = fmaxf(max, score);
    const float correction = exp_exact(max - new_max), weight = exp_exact(score - new_max);
    max = new_max;
    sum = sum * correction + weight;
    for (int j = 0; j < kElementsPerLane; ++j) {
      acc[j] = fused(weight, values[j], acc[j] * correction);
    }
  }
  T* out = static_cast<T*>(arguments.out) + item * dim;
  for (int j = 0; j < kElementsPerLane; ++j) {
    const int d = lane + j * kWarp;
    if (d < dim) out[d] = T::of(acc[j] / sum);
  }
}

}  // namespace

void attention_pools(Stream stream, DType activations, const AttentionArguments& arguments) {
  const int64_t warps = static_cast<int64_t>(arguments.rows.n) * arguments.n_heads;
  with_compute_type(activations, [&]<typename T>(T) {
    with_elements(arguments.kv.k_format, [&]<typename Cache>(Cache) {
      launch("attention", attention_pools_kernel<T, Cache>,
             {static_cast<unsigned>((warps + kPoolWarps - 1) / kPoolWarps)}, kPoolThreads, 0,
             stream, arguments);
    });
  });
}

}  // namespace fp8kv::FP8KV_GPU
