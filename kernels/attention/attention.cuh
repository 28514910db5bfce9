// Shared by the attention kernels on matrix instructions: queries as operands, scales, outputs.
#pragma once

#include "kernels/blocks/fragments.cuh"
#include "kernels/blocks/sequence.cuh"
#include "kernels/launch_attention.h"

namespace fp8kv::FP8KV_GPU {

// Whether the cache's elements can be operands beside these activations.
inline bool takes_operands(DType activations, const AttentionArguments& arguments) {
  const PagedKv& kv = arguments.kv;
  if (!kv.in_elements() || activations == DType::f32 || kv.k_format == KvFormat::f32) return false;
  // f16 has more bits than bf16, and bf16 more range. Queries in bf16 can be scaled into f16, but
  // not the reverse.
  if (kv.k_format == KvFormat::bf16 && activations != DType::bf16) return false;
  return reinterpret_cast<uintptr_t>(arguments.q) % 8 == 0;  // loaded four at a time
}

inline constexpr int kTileTokens = 16;
// Softmax weights are computed times 2^15, so that the largest is 2^15; sums and outputs are
// divided by 2^15 at the end. So weights down to 2^-29 of the largest are normal f16 numbers with
// all their bits, and many small weights are not lost.
inline constexpr float kWeightExponent = 15.0f;
inline constexpr float kLog2E = 1.4426950408889634f;  // of scores for exp2

__device__ inline void store_activation(void* data, int64_t at, bool bf16, float x) {
  if (bf16) {
    static_cast<Bf16*>(data)[at] = Bf16::of(x);
  } else {
    static_cast<F16*>(data)[at] = F16::of(x);
  }
}

// The exponent of |x|; 0 if x is not a normal number.
__device__ inline int exponent_of(float x) {
  const int biased = static_cast<int>(float_bits(x) >> 23 & 0xFFu);
  return biased == 0 || biased == 0xFF ? 0 : biased - 127;
}

__device__ inline float power_of_two(int exponent) {
  return float_from_bits(static_cast<uint32_t>(exponent + 127) << 23);
}

// Q of one head, as the column of B that this lane supplies. Divides it by a power of two that
// brings its largest value near 1, so that f16 can hold bf16 numbers. Returns the exponent; the
// caller multiplies the scores by that power. All lanes of the warp must call. The dimensions are
// in the order of KeyPieces or, with kLoaded, of Mma::load.
//   q: activations, the head from element `at`; query [kHeadDim / 8]
template <typename Cache, int kHeadDim, bool kLoaded>
__device__ inline int query_operand(const void* q, int64_t at, bool present, bool bf16,
                                    uint32_t* query) {
  using Keys = KeyPieces<Cache, kHeadDim>;
  using T = typename Operand<Cache>::Type;
  constexpr int kSteps = kHeadDim / 16;
  const int group = Mma::group(lane_index());
  const uint16_t* head = static_cast<const uint16_t*>(q) + at;
  Vec<uint16_t, 4> codes[kSteps] = {};
  if (present) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      if constexpr (kLoaded) {
        const auto low = load_vec<2>(head + 16 * step + 2 * group);
        const auto high = load_vec<2>(head + 16 * step + 2 * group + 8);
        codes[step] = {low.x[0], low.x[1], high.x[0], high.x[1]};
      } else {
        codes[step] = load_vec<4>(head + Keys::place(4 * step, group));
      }
    }
  }
  const auto value = [&](int step, int i) {
    const uint16_t code = codes[step].x[i];
    return bf16 ? Bf16{code}.value() : F16{code}.value();
  };
  float largest = 0.0f;
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    for (int i = 0; i < 4; ++i) largest = fmaxf(largest, fabsf(value(step, i)));
  }
  largest = fmaxf(largest, warp_xor(largest, Mma::kGroupStride));
  largest = fmaxf(largest, warp_xor(largest, 2 * Mma::kGroupStride));
  const int exponent = T::kIsBf16 ? 0 : exponent_of(largest);
  const float factor = power_of_two(-exponent);
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    for (int i = 0; i < 4; i += 2) {
      query[2 * step + i / 2] =
          packed_pair<T>(value(step, i) * factor, value(step, i + 1) * factor);
    }
  }
  return exponent;
}

// The factor that turns products of operands into scores for exp2.
template <typename Cache>
__device__ inline float score_scale(const AttentionArguments& attention, int kv_head) {
  float scale = attention.scale * kLog2E * power_of_two(Operand<Cache>::exponent());
  if constexpr (kIsFp8<Cache>) scale *= attention.kv.k_scale[kv_head];
  return scale;
}

// A cap of scores for exp2.
struct ScoreCap {
  float most = 0.0f;  // cap * log2(e); 0: no cap
  float rate = 0.0f;  // 2 / cap
};

inline ScoreCap score_cap(float cap) {
  return cap == 0.0f ? ScoreCap{} : ScoreCap{cap * kLog2E, 2.0f / cap};
}

// most * tanh(score / most), within ten roundings of `most`.
__device__ inline float capped(const ScoreCap& cap, float score) {
  const float share = reciprocal_fast(exp2_fast(score * cap.rate) + 1.0f);
  return fused(-2.0f * cap.most, share, cap.most);
}

// The weight of a head's sink, relative to `largest` like the weights of tokens.
__device__ inline float sink_weight(const ScoreOptions& scores, int head, float largest) {
  const float sink = number_at(scores.sinks, scores.sinks_dtype, head) * kLog2E;
  return exp2_fast(sink - (largest - kWeightExponent));
}

// The positions that a row at `position` sees.
__device__ inline Visible visible_at(const AttentionArguments& attention, int position) {
  Visible visible = visible_from(position, attention.window);
  const int chunk = attention.scores.chunk;
  if (chunk > 0) visible.begin = position / chunk * chunk;
  return visible;
}

template <typename Cache>
__device__ inline float output_scale(const AttentionArguments& attention, int kv_head) {
  float scale = power_of_two(Operand<Cache>::exponent());
  if constexpr (kIsFp8<Cache>) scale *= attention.kv.v_scale[kv_head];
  return scale;
}

}  // namespace fp8kv::FP8KV_GPU
