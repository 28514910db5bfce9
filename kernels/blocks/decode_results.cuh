// The results of decode attention. A row of one item gets its result at once. For a row of several
// items, each warp stores a partial result; the last warp to finish adds them up in order, in the
// same launch.
#pragma once

#include "kernels/blocks/decode_items.cuh"
#include "kernels/blocks/fragments.cuh"
#include "kernels/blocks/vec.cuh"

namespace fp8kv::FP8KV_GPU {

// Takes sums over tokens of weight * value; `sum` is the sum of the weights.
template <typename Cache, int kHeadDim>
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
  __device__ inline void store_partial(const Item& item, int head, int dim,
                                       const Vec<float, kCount>& x) const {
    store_vec(decode_.partials + state_at(item, item.chunk, head) * kHeadDim + dim, x);
  }

  // `largest` is the score that the weights are relative to.
  __device__ inline void store_state(const Item& item, int head, float largest, float sum) const {
    store_vec(decode_.states + 2 * state_at(item, item.chunk, head), Vec<float, 2>{largest, sum});
  }

  // All lanes call it once the chunk's partial result is stored.
  __device__ inline void combine_if_last(const Item& item) const {
    warp_sync();  // all lanes' writes come before the ticket
    uint32_t* counter =
        decode_.counters + static_cast<int64_t>(item.row) * decode_.groups + item.group;
    uint32_t ticket = 0;
    if (lane_index() == 0) ticket = take_ticket(counter);
    ticket = warp_from(ticket, 0);
    warp_sync();
    if (ticket + 1 != static_cast<uint32_t>(item.chunks)) return;
    if (lane_index() == 0) *counter = 0;  // for the next launch
    combine(item);
  }

 private:
  // Index of (row, group, chunk, head) in `states` and, times kHeadDim, in `partials`.
  __device__ inline int64_t state_at(const Item& item, int chunk, int head) const {
    const int64_t group = static_cast<int64_t>(item.row) * decode_.groups + item.group;
    return (group * decode_.max_chunks + chunk) * decode_.group_heads + head;
  }

  __device__ inline Vec<float, 2> state_of(const Item& item, int chunk, int head) const {
    return load_vec<2>(decode_.states + 2 * state_at(item, chunk, head));
  }

  // Combines all heads at once; the heads share the warp's lanes. A chunk's numbers come from L2,
  // which takes some 200 ns, and the whole device may be waiting for this last warp. So it starts
  // many reads at a time.
  __device__ inline void combine(const Item& item) const {
    int heads = 1;
    while (heads < item.heads) heads *= 2;
    const int lanes = kWarp / heads;
    const int head = lane_index() / lanes, lane = lane_index() % lanes;
    const bool present = head < item.heads;
    float largest = -INFINITY;
    for (int chunk = lane; present && chunk < item.chunks; chunk += lanes) {
      largest = fmaxf(largest, state_of(item, chunk, head).x[0]);
    }
    for (int mask = 1; mask < lanes; mask *= 2) largest = fmaxf(largest, warp_xor(largest, mask));
    if (!present) return;
    const float scale = output_scale<Cache>(decode_.attention, item.kv_head);
#pragma unroll 1
    for (int dim = 4 * lane; dim < kHeadDim; dim += 4 * lanes) {
      Vec<float, 4> total = {};
      float sum = 0.0f;
#pragma unroll 16
      for (int chunk = 0; chunk < item.chunks; ++chunk) {
        const Vec<float, 2> state = state_of(item, chunk, head);
        const auto part =
            load_vec<4>(decode_.partials + state_at(item, chunk, head) * kHeadDim + dim);
        const float weight = exp2_fast(state.x[0] - largest);
        sum = fused(state.x[1], weight, sum);
        for (int i = 0; i < 4; ++i) total.x[i] = fused(part.x[i], weight, total.x[i]);
      }
      store(item, head, dim, total, sum, scale);
    }
  }

  const Decode& decode_;
};

}  // namespace fp8kv::FP8KV_GPU
