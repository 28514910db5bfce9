// Codes of quantised weights by NEON: some columns are decoded to 16-bit numbers, and multiplied
// while they are in the first-level cache.
#if defined(__aarch64__)

#include <algorithm>
#include <array>

#include "backend/cpu/isa/aarch64/cpu_neon.h"
#include "backend/cpu/isa/aarch64/cpu_neon_sums.h"
#include "backend/cpu/isa/common/cpu_code_kernels.h"

namespace fp8kv {
namespace {

using neon::Floats;

// Numbers of 16 bits.
struct Bf16 {
  static inline uint16x8_t bits(const Floats& x) { return vcombine_u16(half(x.low), half(x.high)); }
  static uint16_t round_each(float x) { return bf16_from_float(x); }

 private:
  // REQUIRES that every NaN in x came from arithmetic.
  static inline uint16x4_t half(float32x4_t x) {
    const uint32x4_t bits = vreinterpretq_u32_f32(x);
    const uint32x4_t even = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    return vaddhn_u32(bits, vaddq_u32(even, vdupq_n_u32(0x7FFF)));
  }
};

struct F16 {
  static inline uint16x8_t bits(const Floats& x) { return neon::halves_of(x); }
  static uint16_t round_each(float x) { return f16_from_float(x); }
};

// (value - zero) * scale
inline Floats scaled(const Floats& value, float zero, float scale) {
  const float32x4_t less = vdupq_n_f32(zero);
  return {vmulq_n_f32(vsubq_f32(value.low, less), scale),
          vmulq_n_f32(vsubq_f32(value.high, less), scale)};
}

// Ways to read codes: `begin` prepares a run, and `read` decodes `count` codes of it, in whole
// steps.

template <typename To>
struct Nibbles {
  static constexpr int64_t kPerByte = 2;

  inline void begin(const float* values, float zero, float scale) {
    const uint16x8_t first = To::bits(scaled(neon::floats_at(values), zero, scale));
    const uint16x8_t second = To::bits(scaled(neon::floats_at(values + 8), zero, scale));
    const uint8x16_t a = vreinterpretq_u8_u16(first), b = vreinterpretq_u8_u16(second);
    low = vuzp1q_u8(a, b);
    high = vuzp2q_u8(a, b);
  }
  inline void read(const uint8_t* codes, int64_t count, uint16_t* to) const {
    for (int64_t k = 0; k < count; k += kNibbleStep) {
      const uint8x16_t bytes = vld1q_u8(codes + k / 2);
      const uint8x16_t even = vandq_u8(bytes, vdupq_n_u8(15)), odd = vshrq_n_u8(bytes, 4);
      look_up(vzip1q_u8(even, odd), to + k);
      look_up(vzip2q_u8(even, odd), to + k + 16);
    }
  }

  uint8x16_t low, high;

 private:
  inline void look_up(uint8x16_t at, uint16_t* to) const {
    const uint8x16_t lows = vqtbl1q_u8(low, at), highs = vqtbl1q_u8(high, at);
    vst1q_u16(to, vreinterpretq_u16_u8(vzip1q_u8(lows, highs)));
    vst1q_u16(to + 8, vreinterpretq_u16_u8(vzip2q_u8(lows, highs)));
  }
};

template <typename To>
struct SignedBytes {
  static constexpr int64_t kPerByte = 1;

  inline void begin(const float* /*values*/, float of_zero, float of_scale) {
    zero = of_zero;
    scale = of_scale;
  }
  inline void read(const uint8_t* codes, int64_t count, uint16_t* to) const {
    for (int64_t k = 0; k < count; k += 8) {
      const int16x8_t words = vmovl_s8(vreinterpret_s8_u8(vld1_u8(codes + k)));
      const Floats values = {vcvtq_f32_s32(vmovl_s16(vget_low_s16(words))),
                             vcvtq_f32_s32(vmovl_high_s16(words))};
      vst1q_u16(to + k, To::bits(scaled(values, zero, scale)));
    }
  }

  float zero, scale;
};

// fp8 codes have no zero points.
template <typename To>
struct E4m3 {
  static constexpr int64_t kPerByte = 1;

  inline void begin(const float* /*values*/, float /*zero*/, float of_scale) { scale = of_scale; }
  inline void read(const uint8_t* codes, int64_t count, uint16_t* to) const {
    using Element = Fp8Element<Fp8Format::e4m3fn>;
    for (int64_t k = 0; k < count; k += 8) {
      const auto* from = reinterpret_cast<const std::byte*>(codes + k);
      const Floats values = neon::Vector<Element>::load(from);
      vst1q_u16(to + k,
                To::bits({vmulq_n_f32(values.low, scale), vmulq_n_f32(values.high, scale)}));
    }
  }

  float scale;
};

// Whether no product of a code with a scale is a NaN, unless the code itself is one.
bool is_ordinary(float scale) {
  return scale - scale == 0.0f;
}

// Decodes the codes of a run one by one, for any scale.
template <typename Reader, typename To>
void read_each(const uint8_t* codes, int64_t count, const float* values, float zero, float scale,
               uint16_t* to) {
  for (int64_t k = 0; k < count; ++k) {
    const int code = Reader::kPerByte == 2 ? codes[k / 2] >> (k % 2 * 4) & 15 : codes[k];
    to[k] = To::round_each((values[code] - zero) * scale);
  }
}

// Columns that are decoded before they are multiplied.
constexpr int64_t kAtOnce = 256;

template <typename Reader, typename To, typename Sums>
void dots(const ScaledRows& rows, const float* x, int64_t x_stride, int64_t count, float* out) {
  alignas(64) uint16_t worth[kDotWeights][kAtOnce];
  std::array<const std::byte*, kDotWeights> weights;
  for (size_t w = 0; w < kDotWeights; ++w) {
    weights[w] = reinterpret_cast<const std::byte*>(worth[w]);
  }
  Sums sums;
  for (int64_t i = 0, begin = 0; begin < count; ++i, begin += rows.run) {
    const int64_t end = run_end(rows.run, begin, count);
    std::array<Reader, kDotWeights> readers;
    for (size_t w = 0; w < kDotWeights; ++w) {
      readers[w].begin(rows.values, rows.zeros[w][i], rows.scales[w][i]);
    }
    for (int64_t k = begin; k < end; k += kAtOnce) {
      const int64_t now = std::min(kAtOnce, end - k);
      for (size_t w = 0; w < kDotWeights; ++w) {
        const uint8_t* codes = rows.codes[w] + k / Reader::kPerByte;
        const float scale = rows.scales[w][i];
        if (is_ordinary(scale)) {
          readers[w].read(codes, now, worth[w]);
        } else {
          read_each<Reader, To>(codes, now, rows.values, rows.zeros[w][i], scale, worth[w]);
        }
      }
      sums.add(weights.data(), Sums::at(x, k), x_stride, now);
    }
  }
  for (int w = 0; w < kDotWeights; ++w) {
    for (int r = 0; r < Sums::kRows; ++r) {
      out[r * kDotWeights + w] = neon::sum_of(sums.of[w][r]);
    }
  }
}

// `SumsOf`: the sums for a number of rows.
template <typename Reader, typename To, template <int> typename SumsOf>
constexpr CodeKernels::ScaledDots kDots[kMaxDotRows] = {
    dots<Reader, To, SumsOf<1>>, dots<Reader, To, SumsOf<2>>, dots<Reader, To, SumsOf<3>>,
    dots<Reader, To, SumsOf<4>>};

template <int Rows>
using F16Sums = neon::Sums<F16Element, Rows>;
template <int Rows>
using Bf16Sums = neon::Sums<Bf16Element, Rows>;

template <typename To>
void fill_as(const float* values, float zero, float scale, CodeTable& table) {
  for (size_t code = 0; code < table.low.size(); code += 16) {
    Nibbles<To> sixteen;
    sixteen.begin(values + code, zero, scale);
    vst1q_u8(table.low.data() + code, sixteen.low);
    vst1q_u8(table.high.data() + code, sixteen.high);
  }
}

void fill(const float* values, float zero, float scale, bool bf16, CodeTable& table) {
  if (!is_ordinary(scale)) return kPortableCodes.fill(values, zero, scale, bf16, table);
  (bf16 ? fill_as<Bf16> : fill_as<F16>)(values, zero, scale, table);
}

template <typename To>
void nibbles_as(const uint8_t* codes, int64_t count, const float* values, float zero, float scale,
                uint16_t* to) {
  Nibbles<To> reader;
  reader.begin(values, zero, scale);
  reader.read(codes, count, to);
}

void nibbles(const uint8_t* codes, int64_t count, const float* values, float zero, float scale,
             bool bf16, uint16_t* to) {
  const int64_t whole = is_ordinary(scale) ? count / kNibbleStep * kNibbleStep : 0;
  if (whole > 0) {
    (bf16 ? nibbles_as<Bf16> : nibbles_as<F16>)(codes, whole, values, zero, scale, to);
  }
  kPortableCodes.nibbles(codes + whole / 2, count - whole, values, zero, scale, bf16, to + whole);
}

template <template <int> typename SumsOfBf16>
constexpr CodeKernels make_table() {
  return {
      .fill = fill,
      .bytes = look_up_each,
      .nibbles = nibbles,
      .plain_dots = {kDots<E4m3<Bf16>, Bf16, SumsOfBf16>,
                     kDots<SignedBytes<Bf16>, Bf16, SumsOfBf16>},
      .plain_dots_f16 = {kDots<E4m3<F16>, F16, F16Sums>, kDots<SignedBytes<F16>, F16, F16Sums>},
      .nibble_dots = kDots<Nibbles<Bf16>, Bf16, SumsOfBf16>,
      .nibble_dots_f16 = kDots<Nibbles<F16>, F16, F16Sums>,
  };
}

}  // namespace

const CodeKernels kNeonCodes = make_table<Bf16Sums>();
const CodeKernels kNeonBf16Codes = make_table<neon::PairSums>();

}  // namespace fp8kv

#endif
