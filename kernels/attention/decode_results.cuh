// The results of decode attention. A row of one item gets its result at once. For a row of several
// items, partial results are stored; a second kernel adds them up in order.
#pragma once

#include "kernels/attention/decode_items.cuh"
#include "kernels/blocks/fragments.cuh"
#include "kernels/blocks/vec.cuh"

namespace fp8kv::FP8KV_GPU {

// Index of (row, group, chunk, head of the group) in `states` and, times the head size, in
// `partials`.
__device__ inline int64_t state_at(const Decode& decode, int row, int group, int chunk, int head) {
  const int64_t row_group = static_cast<int64_t>(row) * decode.groups + group;
  return (row_group * decode.max_chunks + chunk) * decode.group_heads + head;
}

// Takes sums over tokens of weight * value; `sum` is the sum of the weights.
template <int kHeadDim>
class DecodeResults {
 public:
  __device__ explicit DecodeResults(const Decode& decode) : decode_(decode) {}

  // Stores the result for dimensions from `dim` of a head.
  template <int kCount>
  __device__ inline void store(const Item& item, int head, int dim, const Vec<float, kCount>& x,
                               float sum, float scale) const {
    const int64_t at =
        (static_cast<int64_t>(item.row) * decode_.attention.n_heads + item.first_head + head) *
            kHeadDim +
        dim;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      store_activation(decode_.attention.out, at + i, decode_.bf16, x.x[i] / sum * scale);
    }
  }

  template <int kCount>
  __device__ inline void store_partial(const Item& item, int head, int dim, Vec<float, kCount> x,
                                       float scale) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) x.x[i] *= scale;
    store_vec(decode_.partials + state(item, head) * kHeadDim + dim, x);
  }

  // `largest` is the score that the weights are relative to.
  __device__ inline void store_state(const Item& item, int head, float largest, float sum) const {
    store_vec(decode_.states + 2 * state(item, head), Vec<float, 2>{largest, sum});
  }

 private:
  __device__ inline int64_t state(const Item& item, int head) const {
    return state_at(decode_, item.row, item.group, item.chunk, head);
  }

  const Decode& decode_;
};

// Adds up the partial results of one head of a row, by one warp. A row of one chunk has its result.
// Numbers come from L2, which takes some 200 ns, so many reads start at a time.
__device__ inline void combine_chunks(const Decode& decode, int row, int head) {
  const AttentionArguments& attention = decode.attention;
  const int chunks = chunk_count(places_of(attention, row));
  if (chunks == 1) return;
  const int share = attention.n_heads / attention.kv.n_kv_heads;
  const int within = head % share;
  const int group =
      head / share * (decode.groups / attention.kv.n_kv_heads) + within / decode.group_heads;
  const int64_t first = state_at(decode, row, group, 0, within % decode.group_heads);
  const float* states = decode.states + 2 * first;
  const int state_step = 2 * decode.group_heads;
  float largest = -INFINITY;
  for (int chunk = lane_index(); chunk < chunks; chunk += kWarp) {
    largest = fmaxf(largest, states[chunk * state_step]);
  }
  for (int mask = 1; mask < kWarp; mask *= 2) largest = fmaxf(largest, warp_xor(largest, mask));
  const float sink =
      attention.scores.sinks == nullptr ? 0.0f : sink_weight(attention.scores, head, largest);
  const int v_dim = attention.v_dim;
  const int64_t part_step = int64_t{decode.group_heads} * v_dim;
#pragma unroll 1
  for (int dim = 4 * lane_index(); dim < v_dim; dim += 4 * kWarp) {
    const float* partials = decode.partials + first * v_dim + dim;
    Vec<float, 4> total = {};
    float sum = sink;
#pragma unroll 16
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const Vec<float, 2> state = load_vec<2>(states + chunk * state_step);
      const auto part = load_vec<4>(partials + chunk * part_step);
      const float weight = exp2_fast(state.x[0] - largest);
      sum = fused(state.x[1], weight, sum);
      for (int i = 0; i < 4; ++i) total.x[i] = fused(part.x[i], weight, total.x[i]);
    }
    const int64_t at = (static_cast<int64_t>(row) * attention.n_heads + head) * v_dim + dim;
    for (int i = 0; i < 4; ++i) {
      store_activation(attention.out, at + i, decode.bf16, total.x[i] / sum);
    }
  }
}

}  // namespace fp8kv::FP8KV_GPU
