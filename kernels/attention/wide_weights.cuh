// The scores of a slab in attention_wide, and the softmax weights that they become. Both are in
// shared memory. Each warp keeps the maxima and sums of some columns.
#pragma once

#include "kernels/attention/attention.cuh"
#include "kernels/attention/wide_operands.cuh"

namespace fp8kv::FP8KV_GPU {

// T: the type of operands
template <typename T>
class WideWeights {
 public:
  static constexpr int kScorePitch = kWideTokens + 4;        // floats
  static constexpr int kWeightPitch = 2 * kWideTokens + 16;  // bytes
  static constexpr size_t kSharedBytes =
      kWideCols * ((kScorePitch + 2) * sizeof(float) + kWeightPitch);

  __device__ explicit WideWeights(Shared& shared)
      : scores_(shared.take<float>(kWideCols * kScorePitch)),
        weights_(shared.take<unsigned char>(kWideCols * kWeightPitch)),
        corrections_(shared.take<float>(kWideCols)),
        totals_(shared.take<float>(kWideCols)) {
#pragma unroll
    for (int i = 0; i < kOwnCols; ++i) {
      max_[i] = -INFINITY;
      sum_[i] = 0.0f;
    }
  }

  __device__ inline void put_score(int col, int token, float score) {
    scores_[col * kScorePitch + token] = score;
  }

  // Turns scores into weights, a lane a token.
  __device__ inline void find() {
    const int token = lane_index() % kWideTokens;
#pragma unroll
    for (int i = 0; i < kOwnCols; ++i) {
      const int col = own_col(i);
      const float score = scores_[col * kScorePitch + token];
      float largest = fmaxf(max_[i], score);
#pragma unroll
      for (int mask = 1; mask < kWideTokens; mask *= 2) {
        largest = fmaxf(largest, warp_xor(largest, mask));
      }
      // A column that has seen no token has no maximum; any finite number then gives weights of 0.
      const float reference = largest == -INFINITY ? 0.0f : largest;
      const float correction = exp2_fast(max_[i] - reference);
      const float weight = exp2_fast(score - (reference - kWeightExponent));
      max_[i] = largest;
      sum_[i] = fused(sum_[i], correction, weight);
      reinterpret_cast<uint16_t*>(weights_ + col * kWeightPitch)[token] = T::of(weight).code;
      if (token == 0) corrections_[col] = correction;
    }
  }

  // Operand B of 16 tokens and one operand of columns.
  __device__ inline void operand(int frag, int group, uint32_t* b) const {
    column_operand(weights_ + frag * Mma::kCols * kWeightPitch + 2 * group * kTileTokens,
                   kWeightPitch, b);
  }
  // The factor of a column's sums before this slab.
  __device__ inline float correction(int col) const {
    return corrections_[col];
  }

  // Calls work(col, maximum, sum of weights) in one lane for each column; total(col) is then what
  // it returned. A barrier must follow.
  template <typename Work>
  __device__ inline void finish(const Work& work) {
#pragma unroll
    for (int i = 0; i < kOwnCols; ++i) {
#pragma unroll
      for (int mask = 1; mask < kWideTokens; mask *= 2) sum_[i] += warp_xor(sum_[i], mask);
      const int col = own_col(i);
      if (lane_index() % kWideTokens == 0) totals_[col] = work(col, max_[i], sum_[i]);
    }
  }
  __device__ inline float total(int col) const {
    return totals_[col];
  }

 private:
  static constexpr int kColsAtOnce = kWarp / kWideTokens;
  static constexpr int kOwnCols = kWideCols / kWideWarps / kColsAtOnce;  // of a lane

  static __device__ inline int own_col(int i) {
    return (warp_index() * kOwnCols + i) * kColsAtOnce + lane_index() / kWideTokens;
  }

  float* scores_;           // [kWideCols, kWideTokens]
  unsigned char* weights_;  // [kWideCols, kWideTokens] operands
  float* corrections_;      // [kWideCols]
  float* totals_;           // [kWideCols]
  float max_[kOwnCols];
  float sum_[kOwnCols];
};

}  // namespace fp8kv::FP8KV_GPU
