// AMX with BF16, and with FP16: the tile registers. AVX-512 packs their operands.
#if defined(__x86_64__)

#include <array>
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <type_traits>
#include <unistd.h>

#include "backend/cpu/isa/common/cpu_loops.h"
#include "backend/cpu/isa/common/cpu_matrix_loops.h"
#include "backend/cpu/isa/x86/cpu_avx512.h"
#include "backend/cpu/isa/x86/cpu_vbmi.h"

#define FP8KV_AMX_VECTORS \
  [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi,avx2,fma,f16c")]]

namespace fp8kv {
namespace {

using avx512::transpose;

// The numbers that a unit multiplies: 32 of them, made from two vectors of 16 elements.
struct Bf16Number {
  // Numbers below 2^-126 become zero.
  FP8KV_AMX_VECTORS [[gnu::always_inline]] static inline __m512i from(__m512 low, __m512 high) {
    return (__m512i)_mm512_cvtne2ps_pbh(high, low);
  }
  FP8KV_AMX_VECTORS [[gnu::always_inline]] static inline __m512 value(__m256i codes) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(codes), 16));
  }
};
struct F16Number {
  FP8KV_AMX_VECTORS [[gnu::always_inline]] static inline __m512i from(__m512 low, __m512 high) {
    constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtps_ph(low, kNearest)),
                              _mm512_cvtps_ph(high, kNearest), 1);
  }
  FP8KV_AMX_VECTORS [[gnu::always_inline]] static inline __m512 value(__m256i codes) {
    return _mm512_cvtph_ps(codes);
  }
};

// The instructions are written as assembly: intrinsics would need functions of another target, and
// g++ 12 forgets that a configuration is 64 bytes long.
template <typename Number>
class AmxTiles {
 public:
  template <int kTile>
  [[gnu::always_inline]] void load(const void* from, int64_t row_bytes) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(row_bytes), "i"(kTile)
                 : "memory");
  }
  template <int kTile>
  [[gnu::always_inline]] void load_once(const void* from, int64_t row_bytes) {
    asm volatile("tileloaddt1 (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(row_bytes), "i"(kTile)
                 : "memory");
  }
  template <int kTile>
  [[gnu::always_inline]] void store(float* to, int64_t row_bytes) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(row_bytes), "i"(kTile) : "memory");
  }
  template <int kTile>
  [[gnu::always_inline]] void zero() {
    asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
  }
  template <int kSums, int kA, int kB>
  [[gnu::always_inline]] void multiply() {
    if constexpr (std::is_same_v<Number, Bf16Number>) {
      asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSums), "i"(kA), "i"(kB));
    } else {
      // tdpfp16ps, in bytes: assemblers before binutils 2.40 do not know its name.
      asm volatile(".byte 0xc4, 0xe2, %c2, 0x5c, %c1" ::"i"(kSums), "i"(0xC0 | kSums << 3 | kA),
                   "i"((15 - kB) << 3 | 3));
    }
  }
};

// Eight tiles of 16 rows of 64 bytes.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
constexpr TileConfig kConfig;

void begin() {
  asm volatile("ldtilecfg %0" ::"m"(kConfig));
}
void end() {
  asm volatile("tilerelease");
}

// The remainder of `x` after its number, which is in the low or high 16 of `codes`. Zero if that
// number is NaN or infinite.
template <typename Number, int kHalf>
FP8KV_AMX_VECTORS [[gnu::always_inline]] inline __m512 rest(__m512 x, __m512i codes) {
  const __m512 first = Number::value(_mm512_extracti64x4_epi64(codes, kHalf));
  const __m512i exponent = _mm512_set1_epi32(0x7F800000);
  const __mmask16 finite =
      _mm512_cmpneq_epi32_mask(_mm512_and_si512(_mm512_castps_si512(first), exponent), exponent);
  return _mm512_maskz_sub_ps(finite, x, first);
}

// 32 elements in kParts vectors of numbers.
template <typename Number, int kParts>
FP8KV_AMX_VECTORS [[gnu::always_inline]] inline void split(__m512 low, __m512 high,
                                                           __m512i (&parts)[kParts]) {
  parts[0] = Number::from(low, high);
  if constexpr (kParts == 2) {
    parts[1] = Number::from(rest<Number, 0>(low, parts[0]), rest<Number, 1>(high, parts[0]));
  }
}

[[gnu::always_inline]] inline uint32_t first_bits(int64_t count) {
  return count >= 32 ? ~0u : (1u << count) - 1;
}

template <typename Number, int kParts>
FP8KV_AMX_VECTORS void pack_rows(const float* const* rows, int n_rows, int64_t count, float* to) {
  for (int64_t k = 0; k < count; k += kUnitDepth, to += kParts * kUnitWords) {
    const uint32_t mask = first_bits(count - k);
    __m512 words[kParts][16];
#pragma GCC unroll 16
    for (int row = 0; row < 16; ++row) {
      __m512i parts[kParts] = {};
      if (row < n_rows) {
        const float* from = rows[row] + k;
        const __m512 low = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), from);
        const __m512 high = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> 16), from + 16);
        split<Number, kParts>(low, high, parts);
      }
      for (int part = 0; part < kParts; ++part) words[part][row] = _mm512_castsi512_ps(parts[part]);
    }
    for (int part = 0; part < kParts; ++part) {
      transpose(words[part]);
#pragma GCC unroll 16
      for (int pair = 0; pair < 16; ++pair) {
        _mm512_store_ps(to + part * kUnitWords + pair * kUnitRows, words[part][pair]);
      }
    }
  }
}

// 32 elements of a type, split in parts. Elements outside `mask` are zero. Elements that already
// are the unit's numbers are one part, unchanged.
template <typename Number, typename Element>
struct Parts {
  static constexpr bool kIsNumber = std::is_same_v<
      Element, std::conditional_t<std::is_same_v<Number, F16Number>, F16Element, Bf16Element>>;
  static constexpr int kParts = kIsNumber || Element::kBytes == 1 ? 1 : 2;

  FP8KV_AMX_VECTORS [[gnu::always_inline]] static inline void load(const std::byte* from,
                                                                   uint32_t mask,
                                                                   __m512i (&parts)[kParts]) {
    if constexpr (kIsNumber) {
      parts[0] = _mm512_maskz_loadu_epi16(mask, from);
    } else if constexpr (std::is_same_v<Element, F16Element>) {
      const __m512i codes = _mm512_maskz_loadu_epi16(mask, from);
      split<Number, 2>(_mm512_cvtph_ps(_mm512_castsi512_si256(codes)),
                       _mm512_cvtph_ps(_mm512_extracti64x4_epi64(codes, 1)), parts);
    } else {
      static_assert(std::is_same_v<Element, F32Element>);
      split<Number, 2>(_mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), from),
                       _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> 16), from + 64), parts);
    }
  }
};

// 64 fp8 numbers as two vectors of bf16; numbers outside `mask` do not count.
template <Fp8Format F>
FP8KV_AMX_VECTORS [[gnu::always_inline]] inline void load_fp8(const std::byte* from, uint64_t mask,
                                                              __m512i& low, __m512i& high) {
  // Bytes of the first and of the last 32 numbers: low bytes come from one vector, high bytes from
  // the other.
  alignas(64) static constexpr auto kBytes = [] {
    std::array<std::array<uint8_t, 64>, 2> at{};
    for (uint8_t i = 0; i < 64; ++i) {
      at[i / 32][2 * (i % 32)] = i;
      at[i / 32][2 * (i % 32) + 1] = 64 + i;
    }
    return at;
  }();
  const vbmi::Halves halves =
      vbmi::look_up<F>(vbmi::load_tables<F>(), _mm512_maskz_loadu_epi8(mask, from));
  low = _mm512_permutex2var_epi8(halves.low, _mm512_load_si512(kBytes[0].data()), halves.high);
  high = _mm512_permutex2var_epi8(halves.low, _mm512_load_si512(kBytes[1].data()), halves.high);
}

// Numbers that are read at once.
constexpr int64_t kReadOnce = 64;

// Reads `count` of kReadOnce numbers of a type; the others are zero. Returns parts for each 32 of
// them.
template <typename Number, typename Element, int kParts>
FP8KV_AMX_VECTORS [[gnu::always_inline]] inline void load_parts(const std::byte* from,
                                                                int64_t count,
                                                                __m512i (&parts)[2][kParts]) {
  const uint64_t mask = count >= kReadOnce ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
  if constexpr (Element::kBytes == 1) {
    load_fp8<Element::kFormat>(from, mask, parts[0][0], parts[1][0]);
  } else {
    Parts<Number, Element>::load(from, static_cast<uint32_t>(mask), parts[0]);
    Parts<Number, Element>::load(from + 32 * Element::kBytes, static_cast<uint32_t>(mask >> 32),
                                 parts[1]);
  }
}

template <typename Number, typename Element>
FP8KV_AMX_VECTORS void pack_weights(const std::byte* const* rows, int n_rows, int64_t count,
                                    uint16_t* to) {
  constexpr int kParts = Parts<Number, Element>::kParts;
  constexpr int64_t kPart = kUnitWeights * kUnitDepth;
  for (int row = 0; row < n_rows; ++row) {
    uint16_t* out = to + row * kUnitDepth;
    for (int64_t k = 0; k < count; k += kReadOnce, out += 2 * kParts * kPart) {
      __m512i parts[2][kParts];
      load_parts<Number, Element>(rows[row] + k * Element::kBytes, count - k, parts);
      for (int part = 0; part < kParts; ++part) {
        _mm512_store_si512(out + part * kPart, parts[0][part]);
        if (count - k <= kUnitDepth) continue;
        _mm512_store_si512(out + (kParts + part) * kPart, parts[1][part]);
      }
    }
  }
}

// Interleaves pairs of lines: words of 16 columns.
alignas(64) constexpr auto kLowPairs = [] {
  std::array<uint16_t, 32> at{};
  for (uint16_t i = 0; i < 32; ++i) at[i] = static_cast<uint16_t>(i / 2 + i % 2 * 32);
  return at;
}();
alignas(64) constexpr auto kHighPairs = [] {
  std::array<uint16_t, 32> at = kLowPairs;
  for (uint16_t& each : at) each = static_cast<uint16_t>(each + 16);
  return at;
}();

template <typename Number, typename Element>
FP8KV_AMX_VECTORS void pack_columns(const std::byte* const* lines, int n, int64_t columns,
                                    float* to, int64_t block_words) {
  constexpr int kParts = Parts<Number, Element>::kParts;
  const __m512i pairs[2] = {_mm512_load_si512(kLowPairs.data()),
                            _mm512_load_si512(kHighPairs.data())};
  for (int64_t first = 0; first < columns; first += kReadOnce, to += 4 * block_words) {
    const int64_t count = columns - first, offset = first * Element::kBytes;
    for (int pair = 0; pair < 16; ++pair) {
      __m512i one[2][kParts] = {}, other[2][kParts] = {};
      if (2 * pair < n) load_parts<Number, Element>(lines[2 * pair] + offset, count, one);
      if (2 * pair + 1 < n) load_parts<Number, Element>(lines[2 * pair + 1] + offset, count, other);
#pragma GCC unroll 4
      for (int block = 0; block < 4; ++block) {
        if (count <= block * kUnitRows) break;
        for (int part = 0; part < kParts; ++part) {
          float* at = to + block * block_words + part * kUnitWords + pair * kUnitRows;
          _mm512_store_si512(at, _mm512_permutex2var_epi16(one[block / 2][part], pairs[block % 2],
                                                           other[block / 2][part]));
        }
      }
    }
  }
}

// Writes 16 columns of a row; `mask` selects them.
FP8KV_AVX512 [[gnu::always_inline]] inline void write(__m512 x, float factor, __m512 bias,
                                                      __mmask16 mask, bool add, float* to) {
  x = _mm512_add_ps(_mm512_mul_ps(x, _mm512_set1_ps(factor)), bias);
  if (add) x = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, to), x);
  _mm512_mask_storeu_ps(to, mask, x);
}

FP8KV_AVX512 void unpack(const float* sums, int first, int n, const UnitOut& out) {
  const uint32_t columns = first_bits(out.columns);
  float factors[16];
  for (int row = 0; row < n; ++row) {
    factors[row] = out.scales == nullptr ? 1.0f : 1.0f / out.scales[row];
  }
  for (int half = 0; half < 2; ++half) {
    const auto mask = static_cast<__mmask16>(columns >> (16 * half));
    __m512 x[16];
#pragma GCC unroll 16
    for (int w = 0; w < 16; ++w) x[w] = _mm512_load_ps(sums + half * kUnitWords + w * kUnitRows);
    transpose(x);
    const __m512 bias = out.bias == nullptr ? _mm512_set1_ps(-0.0f)  // adding -0 changes no number
                                            : _mm512_maskz_loadu_ps(mask, out.bias + half * 16);
    float* to = out.at + half * 16;
    if (n == kUnitRows) {
#pragma GCC unroll 16
      for (int row = 0; row < 16; ++row)
        write(x[row], factors[row], bias, mask, out.add, to + row * out.stride);
    } else {
      for (int row = 0; row < n; ++row) {
        write(x[first + row], factors[row], bias, mask, out.add, to + row * out.stride);
      }
    }
  }
}

constexpr UnitNumbers kBf16 = {
    .type = DType::bf16,
    .pack_rows = {pack_rows<Bf16Number, 1>, pack_rows<Bf16Number, 2>},
    .pack_weights = per_type<UnitNumbers::PackWeights>(
        []<typename T>() { return pack_weights<Bf16Number, T>; }),
    .pack_columns = per_type<UnitNumbers::PackColumns>(
        []<typename T>() { return pack_columns<Bf16Number, T>; }),
    .multiply = matrix::kMultiply<AmxTiles<Bf16Number>>,
};

constexpr UnitNumbers kF16 = {
    .type = DType::f16,
    .pack_rows = {pack_rows<F16Number, 1>, pack_rows<F16Number, 2>},
    .pack_weights = matrix::wide_types<UnitNumbers::PackWeights>(
        pack_weights<F16Number, F32Element>, pack_weights<F16Number, F16Element>),
    .pack_columns = matrix::wide_types<UnitNumbers::PackColumns>(
        pack_columns<F16Number, F32Element>, pack_columns<F16Number, F16Element>),
    .multiply = matrix::kMultiply<AmxTiles<F16Number>>,
};

// Registers of CPUID.
enum class Register { eax, edx };

// Whether this processor has all of the bits in a register of a CPUID leaf.
bool has_bits(unsigned leaf, unsigned subleaf, Register which, unsigned bits) {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(leaf, subleaf, &eax, &ebx, &ecx, &edx) != 0 &&
         ((which == Register::eax ? eax : edx) & bits) == bits;
}

}  // namespace

bool take_amx() {
  constexpr unsigned kAmxBf16 = 1u << 22, kAmxTile = 1u << 24;
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // Linux: arch_prctl
  static const bool kTaken = has_bits(7, 0, Register::edx, kAmxBf16 | kAmxTile) &&
                             syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return kTaken;
}

bool take_amx_fp16() {
  constexpr unsigned kAmxFp16 = 1u << 21;
  static const bool kTaken = take_amx() && has_bits(7, 1, Register::eax, kAmxFp16) &&
                             same_f16_product(kAmxF16MatrixUnit, kPlainF16MatrixUnit);
  return kTaken;
}

const MatrixUnit kAmxMatrixUnit = {begin, end, kBf16, nullptr, unpack};
const MatrixUnit kAmxF16MatrixUnit = {begin, end, kBf16, &kF16, unpack};

}  // namespace fp8kv

#endif
