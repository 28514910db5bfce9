#include "backend/cpu/isa/x86/cpu_pair_speed.h"

#if defined(__x86_64__)

#include <algorithm>
#include <chrono>
#include <limits>

#include "backend/cpu/isa/x86/cpu_avx512.h"

#define FP8KV_AVX512_BF16 \
  [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,f16c")]]

namespace fp8kv {
namespace {

// Enough sums to hide the latency of an addition, and enough steps for the clock.
constexpr int kSums = 12, kSteps = 60, kRounds = 12;

// Keeps the compiler from removing the timed code.
FP8KV_AVX512_BF16 [[gnu::always_inline]] inline void use(__m512 (&sums)[kSums]) {
#pragma GCC unroll 12
  for (int i = 0; i < kSums; ++i) asm volatile("" : "+v"(sums[i]));
}

template <bool kPairs>
FP8KV_AVX512_BF16 double seconds_of_round() {
  __m512 sums[kSums];
#pragma GCC unroll 12
  for (int i = 0; i < kSums; ++i) sums[i] = _mm512_setzero_ps();
  __m512 x = _mm512_set1_ps(1.0f);
  asm volatile("" : "+v"(x));
  const auto begin = std::chrono::steady_clock::now();
  for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) {
      if constexpr (kPairs) {
        sums[i] = _mm512_dpbf16_ps(sums[i], (__m512bh)x, (__m512bh)x);
      } else {
        sums[i] = _mm512_fmadd_ps(x, x, sums[i]);
      }
    }
    use(sums);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

double measure_bf16_pairs() {
  double pairs = std::numeric_limits<double>::infinity(), singles = pairs;
  for (int round = 0; round < kRounds; ++round) {
    pairs = std::min(pairs, seconds_of_round<true>());
    singles = std::min(singles, seconds_of_round<false>());
  }
  return pairs / (2 * singles);  // a pair is two multiplications
}

}  // namespace fp8kv

#endif
