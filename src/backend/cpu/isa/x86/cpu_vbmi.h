// FP8 codes by AVX512_VBMI. Every fp8 value is a bf16, whose two bytes are looked up for 64 codes
// at a time. The tables have 128 entries and fill two registers; the sign is added afterwards. For
// files of kernels alone; see cpu_avx512.h.
#pragma once

#if defined(__x86_64__)

#include <array>
#include <cstdint>

#include "backend/cpu/isa/x86/cpu_avx512.h"
#include "core/numbers/fp8.h"
#include "core/numbers/half.h"

#define FP8KV_VBMI [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx2,fma,f16c")]]

namespace fp8kv::vbmi {

// The high and low bytes of the bf16 of codes 0 to 127.
template <Fp8Format F>
struct Bytes {
  alignas(64) std::array<uint8_t, 128> high;
  alignas(64) std::array<uint8_t, 128> low;

  Bytes() {
    for (unsigned code = 0; code < 128; ++code) {
      const uint16_t value = bf16_from_float(fp8_decode<F>(static_cast<uint8_t>(code)));
      high[code] = static_cast<uint8_t>(value >> 8);
      low[code] = static_cast<uint8_t>(value);
    }
  }
};

template <Fp8Format F>
const Bytes<F> kBytes;

struct Tables {
  __m512i high[2];
  __m512i low[2];
};

template <Fp8Format F>
FP8KV_VBMI [[gnu::always_inline]] inline Tables load_tables() {
  const Bytes<F>& bytes = kBytes<F>;
  return {{_mm512_load_si512(bytes.high.data()), _mm512_load_si512(bytes.high.data() + 64)},
          {_mm512_load_si512(bytes.low.data()), _mm512_load_si512(bytes.low.data() + 64)}};
}

// 64 values, with their high and low bytes apart.
struct Halves {
  __m512i high;
  __m512i low;
};

template <Fp8Format F>
FP8KV_VBMI [[gnu::always_inline]] inline Halves look_up(const Tables& tables, __m512i codes) {
  const __m512i sign = _mm512_set1_epi8(static_cast<char>(0x80));
  // An index counts by its low seven bits.
  __m512i high = _mm512_permutex2var_epi8(tables.high[0], codes, tables.high[1]);
  high = _mm512_ternarylogic_epi32(high, codes, sign, 0xF8);  // high | (codes & sign)
  const __m512i low = _mm512_permutex2var_epi8(tables.low[0], codes, tables.low[1]);
  if constexpr (fp8_spec(F).fnuz) {  // -0 stands for NaN
    const __mmask64 nan = _mm512_cmpeq_epi8_mask(codes, sign);
    return {_mm512_mask_mov_epi8(high, nan, _mm512_set1_epi8(0x7F)),
            _mm512_mask_mov_epi8(low, nan, _mm512_set1_epi8(static_cast<char>(0xC0)))};
  }
  return {high, low};
}

// Which bytes make 16 floats: float i takes byte first + i * step of the high bytes and of the low
// bytes.
struct Places {
  alignas(64) std::array<uint8_t, 64> at{};

  constexpr Places(int first, int step) {
    for (int i = 0; i < avx512::kLanes; ++i) {
      const auto from = static_cast<uint8_t>(first + i * step);
      at[4 * i + 2] = 64 + from;
      at[4 * i + 3] = from;
    }
  }
};
// Parts of the words of a vector; and quarters of a vector of codes in their order.
inline constexpr Places kParts[4] = {{0, 4}, {1, 4}, {2, 4}, {3, 4}};
inline constexpr Places kQuarters[4] = {{0, 1}, {16, 1}, {32, 1}, {48, 1}};

FP8KV_VBMI [[gnu::always_inline]] inline __m512 floats_at(const Halves& halves,
                                                          const Places& places) {
  constexpr __mmask64 kUpperTwo = 0xCCCCCCCCCCCCCCCCu;  // bytes of each float; the others are zero
  const __m512i at = _mm512_load_si512(places.at.data());
  return _mm512_castsi512_ps(
      _mm512_maskz_permutex2var_epi8(kUpperTwo, halves.high, at, halves.low));
}

}  // namespace fp8kv::vbmi

#endif
