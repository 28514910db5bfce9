// Attention for any even head size up to kMostHeadDim, any types and any format of rows. It is the
// reference for the other kernels, and serves f32 models. One warp per row, query head and part of
// V; nothing is rounded between the cache and the output.
#include "kernels/attention/chosen.cuh"
#include "kernels/attention/distance_bias.cuh"
#include "kernels/blocks/kv_rows.cuh"
#include "kernels/blocks/reduce.cuh"
#include "kernels/blocks/vec.cuh"

namespace fp8kv::FP8KV_GPU {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarp;
// Elements of V that a warp sums up. For larger heads, several warps each compute all scores: more
// sums per lane would take registers from heads of any size. One warp sums up a whole latent.
template <bool kLatent>
inline constexpr int kPartDim = kLatent ? kMostHeadDim : 256;

int parts_of(const PagedKv& kv) {
  return kv.v_in_k > 0 ? 1 : (kv.v_dim() + kPartDim<false> - 1) / kPartDim<false>;
}

// One warp per (row, head, part of V), numbered row by row, then head by head.
template <typename T, typename Cache, bool kLatent>
__global__ void attention_any_kernel(AttentionArguments arguments, int parts) {
  after_previous();
  Shared shared;
  const PagedKv& kv = arguments.kv;
  const ScoreOptions& options = arguments.scores;
  constexpr int kDimsPerLane = kPartDim<kLatent> / kWarp;
  const int head_dim = kv.head_dim, v_dim = kLatent ? kv.v_in_k : arguments.v_dim;
  float* all_queries = shared.take<float>(kWarps * head_dim);
  float* all_weights = shared.take<float>(kThreads);
  float* all_values = kIsAny<Cache> ? shared.take<float>(kWarps * v_dim) : nullptr;
  const int64_t number = static_cast<int64_t>(block_index().x) * kWarps + warp_index();
  const int64_t item = number / parts;
  if (item >= static_cast<int64_t>(arguments.rows.n) * arguments.n_heads) return;
  const int first = static_cast<int>(number % parts) * kPartDim<kLatent>;
  float* query = all_queries + warp_index() * head_dim;
  float* weights = all_weights + warp_index() * kWarp;

  const auto row = static_cast<int>(item / arguments.n_heads);
  const auto head = static_cast<int>(item % arguments.n_heads);
  const int kv_head = head / (arguments.n_heads / kv.n_kv_heads);
  const int32_t* pages =
      arguments.rows.page_table +
      static_cast<int64_t>(sequence_of(arguments.rows, row)) * arguments.rows.max_pages;
  Visible visible = visible_from(arguments.rows.positions[row], arguments.window);
  if (options.chunk > 0) {
    visible.begin = (visible.end - 1) / options.chunk * options.chunk;
  }
  const ChosenTokens chosen = chosen_tokens(options, row, kv_head);
  visible = visible_places(options, visible);
  const int lane = lane_index();

  const T* q = static_cast<const T*>(arguments.q) + item * head_dim;
  for (int d = lane; d < head_dim; d += kWarp) query[d] = q[d].value();
  warp_sync();

  if constexpr (kIsAny<Cache>) {
    if (kv.rotated()) rotate_query<T>(query, head_dim);
  }
  const float k_scale = stored_scale<Cache>(kv.k_scale, kv_head);
  const float v_scale = stored_scale<Cache>(kv.v_scale, kv_head);
  float acc[kDimsPerLane] = {};
  float sum = 0.0f, max = -INFINITY;
  for (int begin = visible.begin; begin < visible.end; begin += kWarp) {
    // Lane i computes the weight of token begin + i.
    const int place = begin + lane;
    float score = -INFINITY;
    if (place < visible.end) {
      const int token = chosen.position(place);
      const KeyRow<Cache> k(kv, kv.row(pages[token / kv.page_size], kv_head, token % kv.page_size));
      score = 0.0f;
      for (int d = 0; d < head_dim; ++d) score = fused(query[d], k.value(d), score);
      score *= k_scale * arguments.scale;
      if (options.cap != 0.0f) score = options.cap * tanh_exact(score / options.cap);
      if (options.bias != nullptr) score += options.bias[head * options.positions + token];
      if (options.distance_states != nullptr)
        score += distance_bias<T>(arguments, item, row, token);
    }
    const float new_max = fmaxf(max, warp_max(score));
    const float weight = exp_exact(score - new_max);
    const float correction = exp_exact(max - new_max);
    max = new_max;
    sum = sum * correction + warp_sum(weight);
    weights[lane] = weight;
    warp_sync();
    const int count = visible.end - begin < kWarp ? visible.end - begin : kWarp;
    for (int j = 0; j < kDimsPerLane; ++j) acc[j] *= correction;
    for (int i = 0; i < count; ++i) {
      const int at = chosen.position(begin + i);
      const ValueRow<Cache> v(kv, kv.row(pages[at / kv.page_size], kv_head, at % kv.page_size),
                              kLatent ? head_dim : v_dim);
      if constexpr (kIsAny<Cache>) {
        // Each lane decodes the elements that it sums up. Inside the loop over the sums, code for
        // all formats would prevent unrolling, and so put the sums in local memory.
        float* values = all_values + warp_index() * v_dim;
        const int end = first + kPartDim<kLatent> < v_dim ? first + kPartDim<kLatent> : v_dim;
        for (int d = first + lane; d < end; d += kWarp) values[d] = v.value(d);
        for (int j = 0; j < kDimsPerLane; ++j) {
          const int d = first + lane + j * kWarp;
          if (d < v_dim) acc[j] = fused(weights[i], values[d], acc[j]);
        }
      } else {
        for (int j = 0; j < kDimsPerLane; ++j) {
          const int d = first + lane + j * kWarp;
          if (d < v_dim) acc[j] = fused(weights[i], v.value(d), acc[j]);
        }
      }
    }
    warp_sync();
  }
  if (options.sinks != nullptr) {
    const float sink = number_at(options.sinks, options.sinks_dtype, head);
    const float new_max = fmaxf(max, sink);
    const float correction = exp_exact(max - new_max);
    sum = sum * correction + exp_exact(sink - new_max);
    for (int j = 0; j < kDimsPerLane; ++j) acc[j] *= correction;
  }
  T* out = static_cast<T*>(arguments.out) + item * v_dim;
  if constexpr (kIsAny<Cache>) {
    if (kv.rotated()) return rotate_back_to<T>(acc, v_dim, v_scale / sum, query, out);
  }
  for (int j = 0; j < kDimsPerLane; ++j) {
    const int d = first + lane + j * kWarp;
    if (d < v_dim) out[d] = T::of(acc[j] / sum * v_scale);
  }
}

template <typename T, typename Cache, bool kLatent>
void run(Stream stream, const AttentionArguments& arguments) {
  const int parts = parts_of(arguments.kv);
  const int64_t warps = static_cast<int64_t>(arguments.rows.n) * arguments.n_heads * parts;
  const int floats = kWarps * arguments.kv.head_dim + kThreads +
                     (kIsAny<Cache> ? kWarps * arguments.kv.v_dim() : 0);
  launch("attention", attention_any_kernel<T, Cache, kLatent>,
         {static_cast<unsigned>((warps + kWarps - 1) / kWarps)}, kThreads,
         static_cast<size_t>(floats) * sizeof(float), stream, arguments, parts);
}

}  // namespace

void attention_any(Stream stream, DType activations, const AttentionArguments& arguments) {
  with_compute_type(activations, [&]<typename T>(T) {
    with_cache_type(arguments.kv, [&]<typename Cache>(Cache) {
      arguments.kv.v_in_k > 0 ? run<T, Cache, true>(stream, arguments)
                              : run<T, Cache, false>(stream, arguments);
    });
  });
}

}  // namespace fp8kv::FP8KV_GPU
