#include "roofline.h"

// g++ 12 warns of the deliberately undefined operands inside its own intrinsics, as if the caller
// had made a mistake (GCC bug 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "backend/cpu/isa/common/cpu_kernels.h"
#include "backend/cpu/memory/cpu_memory.h"

namespace fp8kv::bench {
namespace {

constexpr int64_t kSteps = 1 << 21;
// Enough independent sums to cover the latency of two multiply-adds a cycle.
constexpr int kSums = 12;

volatile float g_sink;

#if defined(__x86_64__)
[[gnu::target("avx512f")]] void multiply_add_avx512(int64_t steps) {
  __m512 sum[kSums] = {};
  const __m512 x = _mm512_set1_ps(g_sink);
  for (int64_t i = 0; i < steps; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < kSums; ++j) {
      sum[j] = _mm512_fmadd_ps(x, x, sum[j]);
      asm volatile("" : "+v"(sum[j]));  // each to be computed, and in a register
    }
  }
#pragma GCC unroll 12
  for (const __m512& each : sum) g_sink = g_sink + _mm512_reduce_add_ps(each);
}

[[gnu::target("avx512f,avx512bf16")]] void multiply_add_bf16(int64_t steps) {
  __m512 sum[kSums] = {};
  const auto x = (__m512bh)_mm512_castps_si512(_mm512_set1_ps(g_sink));
  for (int64_t i = 0; i < steps; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < kSums; ++j) {
      sum[j] = _mm512_dpbf16_ps(sum[j], x, x);
      asm volatile("" : "+v"(sum[j]));  // each to be computed, and in a register
    }
  }
#pragma GCC unroll 12
  for (const __m512& each : sum) g_sink = g_sink + _mm512_reduce_add_ps(each);
}

// Four tiles of 16 x 16 sums; each row has 32 numbers, all 1.
void multiply_add_amx(int64_t steps) {
  alignas(64) static const std::array<uint16_t, 16 * 32> kOnes = [] {
    std::array<uint16_t, 16 * 32> ones{};
    ones.fill(0x3F80);
    return ones;
  }();
  const UnitTurn turn(*cpu_kernels(CpuIsa::amx).matrix_unit);
  asm volatile(
      "tilezero %%tmm0\n tilezero %%tmm1\n tilezero %%tmm2\n tilezero %%tmm3\n"
      "tileloadd (%0,%1,1), %%tmm4\n tileloadd (%0,%1,1), %%tmm5" ::"r"(kOnes.data()),
      "r"(int64_t{64})
      : "memory");
  for (int64_t i = 0; i < steps; ++i) {
    asm volatile(
        "tdpbf16ps %tmm5, %tmm4, %tmm0\n tdpbf16ps %tmm5, %tmm4, %tmm1\n"
        "tdpbf16ps %tmm5, %tmm4, %tmm2\n tdpbf16ps %tmm5, %tmm4, %tmm3");
  }
}

[[gnu::target("avx2,fma")]] void multiply_add_avx2(int64_t steps) {
  __m256 sum[kSums] = {};
  const __m256 x = _mm256_set1_ps(g_sink);
  for (int64_t i = 0; i < steps; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < kSums; ++j) {
      sum[j] = _mm256_fmadd_ps(x, x, sum[j]);
      asm volatile("" : "+x"(sum[j]));  // each to be computed, and in a register
    }
  }
#pragma GCC unroll 12
  for (const __m256& each : sum) g_sink = g_sink + each[0];
}
#elif defined(__aarch64__)
// Two vectors to a sum: processors have up to four pipelines.
void multiply_add_neon(int64_t steps) {
  float32x4_t sum[2 * kSums] = {};
  const float32x4_t x = vdupq_n_f32(g_sink);
  for (int64_t i = 0; i < steps; ++i) {
#pragma GCC unroll 24
    for (int j = 0; j < 2 * kSums; ++j) {
      sum[j] = vfmaq_f32(sum[j], x, x);
      asm volatile("" : "+w"(sum[j]));  // each to be computed, and in a register
    }
  }
#pragma GCC unroll 24
  for (const float32x4_t& each : sum) g_sink = g_sink + vaddvq_f32(each);
}

[[gnu::target("arch=armv8.2-a+bf16")]] void multiply_add_neon_bf16(int64_t steps) {
  float32x4_t sum[2 * kSums] = {};
  const bfloat16x8_t x = vreinterpretq_bf16_f32(vdupq_n_f32(g_sink));
  for (int64_t i = 0; i < steps; ++i) {
#pragma GCC unroll 24
    for (int j = 0; j < 2 * kSums; ++j) {
      sum[j] = vbfmmlaq_f32(sum[j], x, x);
      asm volatile("" : "+w"(sum[j]));
    }
  }
#pragma GCC unroll 24
  for (const float32x4_t& each : sum) g_sink = g_sink + vaddvq_f32(each);
}
#endif

// Four lanes, as in the vectors of every 64-bit processor.
void multiply_add_portable(int64_t steps) {
  float sum[kSums * 4] = {};
  const float x = g_sink;
  for (int64_t i = 0; i < steps; ++i) {
    for (float& each : sum) each += each * x;
  }
  for (const float each : sum) g_sink = g_sink + each;
}

double rate(void (*work)(int64_t), int lanes) {
  const double time = best_time(0.3, [&] { work(kSteps); });
  return 2.0 * kSums * lanes * static_cast<double>(kSteps) / time;
}

}  // namespace

double peak_f32(CpuIsa isa) {
#if defined(__x86_64__)
  if (isa >= CpuIsa::avx512) return rate(multiply_add_avx512, 16);
  if (isa == CpuIsa::avx2) return rate(multiply_add_avx2, 8);
#elif defined(__aarch64__)
  if (isa >= CpuIsa::neon) return rate(multiply_add_neon, 2 * 4);
#endif
  (void)isa;
  return rate(multiply_add_portable, 4);
}

double peak_bf16(CpuIsa isa) {
#if defined(__x86_64__)
  if (isa == CpuIsa::amx) {
    constexpr int64_t kTurns = kSteps / 16;
    const double time = best_time(0.3, [] { multiply_add_amx(kTurns); });
    return 2.0 * 4 * 16 * 16 * 32 * static_cast<double>(kTurns) / time;
  }
  if (isa == CpuIsa::avx512_bf16) return rate(multiply_add_bf16, 32);
#elif defined(__aarch64__)
  if (isa == CpuIsa::neon_bf16) return rate(multiply_add_neon_bf16, 2 * 16);
#endif
  return peak_f32(isa);
}

double peak_f16(CpuIsa isa) {
  // A product with f16 weights is three products of parts.
  return isa == CpuIsa::amx ? peak_bf16(isa) / 3 : peak_f32(isa);
}

double read_bandwidth(ThreadPool& pool) {
  constexpr int64_t kBytes = int64_t{1} << 30;
  constexpr int64_t kPiece = int64_t{1} << 20;
  const std::shared_ptr<std::byte> memory = allocate_zeroed(kBytes);
  std::memset(memory.get(), 1, kBytes);
  std::atomic<uint64_t> total = 0;
  const double time = best_time(1.0, [&] {
    pool.run(kBytes / kPiece, [&](int64_t job, int /*thread*/) {
      const auto* words = reinterpret_cast<const uint64_t*>(memory.get() + job * kPiece);
      uint64_t sums[16] = {};
      for (int64_t i = 0; i < kPiece / 8; i += 16) {
        for (int j = 0; j < 16; ++j) sums[j] ^= words[i + j];
      }
      for (const uint64_t sum : sums) total.fetch_add(sum, std::memory_order_relaxed);
    });
  });
  return static_cast<double>(kBytes) / time;
}

}  // namespace fp8kv::bench
