#include "base/sha256_blocks.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace fp8kv {

#if defined(__x86_64__)

namespace {

// The round constants. Source: FIPS 180-4, 4.2.2.
alignas(16) constexpr uint32_t kRounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

}  // namespace

bool has_sha256_instructions() {
  static const bool kHas = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __builtin_cpu_supports("sse4.1") && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 &&
           (b & bit_SHA) != 0;
  }();
  return kHas;
}

// The SHA instructions keep the state as the words A B E F and C D G H, from the highest lane down.
__attribute__((target("sha,sse4.1"))) void add_sha256_blocks(uint32_t* state, const uint8_t* blocks,
                                                             size_t n_blocks) {
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  auto* const words = reinterpret_cast<__m128i*>(state);
  const __m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128(words), 0xB1);
  const __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128(words + 1), 0x1B);
  __m128i abef = _mm_alignr_epi8(cdab, efgh, 8);
  __m128i cdgh = _mm_blend_epi16(efgh, cdab, 0xF0);
  for (; n_blocks > 0; --n_blocks, blocks += 64) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i schedule[4];
    for (int i = 0; i < 4; ++i) {
      const auto* const from = reinterpret_cast<const __m128i*>(blocks) + i;
      schedule[i] = _mm_shuffle_epi8(_mm_loadu_si128(from), big_endian);
    }
    for (int i = 0; i < 16; ++i) {  // four rounds at a time
      __m128i& now = schedule[i % 4];
      const __m128i rounds = _mm_load_si128(reinterpret_cast<const __m128i*>(kRounds) + i);
      const __m128i sum = _mm_add_epi32(now, rounds);
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0E));
      if (i >= 12) continue;
      const __m128i last = schedule[(i + 3) % 4];
      const __m128i seventh = _mm_alignr_epi8(last, schedule[(i + 2) % 4], 4);
      const __m128i partial =
          _mm_add_epi32(_mm_sha256msg1_epu32(now, schedule[(i + 1) % 4]), seventh);
      now = _mm_sha256msg2_epu32(partial, last);
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1B);
  const __m128i dchg = _mm_shuffle_epi32(cdgh, 0xB1);
  _mm_storeu_si128(words, _mm_blend_epi16(feba, dchg, 0xF0));
  _mm_storeu_si128(words + 1, _mm_alignr_epi8(dchg, feba, 8));
}

#else

bool has_sha256_instructions() {
  return false;
}

void add_sha256_blocks(uint32_t*, const uint8_t*, size_t) {}

#endif

}  // namespace fp8kv
