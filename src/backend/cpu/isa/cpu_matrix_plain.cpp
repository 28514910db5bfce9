// Matrix units in plain C++, with the bits of AMX and AMX-FP16. Tests can so run their callers and
// loops on every processor.
#include <cmath>
#include <cstring>
#include <type_traits>

#include "backend/cpu/isa/common/cpu_elements.h"
#include "backend/cpu/isa/common/cpu_loops.h"
#include "backend/cpu/isa/common/cpu_matrix_loops.h"
#include "core/numbers/half.h"

namespace fp8kv {
namespace {

// Flushes numbers below the normal range to zero, like AMX does before and after.
float flushed(float x) {
  return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x;
}

// The numbers that a unit multiplies.
struct Bf16Number {
  static uint16_t from(float x) { return bf16_from_float(flushed(x)); }
  static float value(uint16_t code) { return flushed(bf16_to_float(code)); }
};
struct F16Number {
  static uint16_t from(float x) { return f16_from_float(x); }
  static float value(uint16_t code) { return f16_to_float(code); }
};

// Whether a * b is exact: within the normal range, or zero by a factor.
bool is_exact(float a, float b, float product) {
  const float magnitude = std::fabs(product);
  const bool normal = magnitude >= 0x1p-126f && magnitude <= 0x1.fffffep127f;
  const bool zero = magnitude == 0.0f && (a == 0.0f || b == 0.0f);
  return normal || zero;
}

// A register's 16 rows of 16 words as numbers, the first of each word and the second apart.
using Numbers = float[2][16][16];

// sums += a * b for 16 numbers b, each product and its addition rounded once, and then flushed.
void add_products(float a, const float (&b)[16], float (&sums)[16]) {
  float products[16];
  int n_exact = 0;
  for (int j = 0; j < 16; ++j) {
    products[j] = a * b[j];
    n_exact += is_exact(a, b[j], products[j]) ? 1 : 0;
  }
  if (n_exact == 16) {
    for (int j = 0; j < 16; ++j) sums[j] = flushed(products[j] + sums[j]);
  } else {
    for (int j = 0; j < 16; ++j) sums[j] = flushed(std::fma(a, b[j], sums[j]));
  }
}

// Eight registers of 16 rows of 16 words.
template <typename Number>
class PlainTiles {
 public:
  template <int kTile>
  void load(const void* from, int64_t row_bytes) {
    for (int row = 0; row < 16; ++row) {
      std::memcpy(words_[kTile][row], static_cast<const std::byte*>(from) + row * row_bytes, 64);
    }
  }
  template <int kTile>
  void load_once(const void* from, int64_t row_bytes) {
    load<kTile>(from, row_bytes);
  }
  template <int kTile>
  void store(float* to, int64_t row_bytes) const {
    for (int row = 0; row < 16; ++row) {
      std::memcpy(reinterpret_cast<std::byte*>(to) + row * row_bytes, words_[kTile][row], 64);
    }
  }
  template <int kTile>
  void zero() {
    std::memset(words_[kTile], 0, sizeof words_[kTile]);
  }
  // TDPBF16PS and TDPFP16PS: the even and the odd elements of a step have separate sums. Each
  // product and its addition is rounded once. Then the two sums are added, and the total is added
  // to the tile.
  template <int kSums, int kA, int kB>
  void multiply() {
    Numbers a, b;
    read_numbers(words_[kA], a);
    read_numbers(words_[kB], b);
    for (int i = 0; i < 16; ++i) {
      float sums[2][16] = {};
      for (int k = 0; k < 16; ++k) {
        add_products(a[0][i][k], b[0][k], sums[0]);
        add_products(a[1][i][k], b[1][k], sums[1]);
      }
      for (int j = 0; j < 16; ++j) {
        const float both = flushed(sums[0][j] + sums[1][j]);
        uint32_t& to = words_[kSums][i][j];
        to = float_bits(flushed(flushed(float_from_bits(to)) + both));
      }
    }
  }

 private:
  static void read_numbers(const uint32_t (&words)[16][16], Numbers& numbers) {
    for (int row = 0; row < 16; ++row) {
      for (int column = 0; column < 16; ++column) {
        for (int part = 0; part < 2; ++part) {
          numbers[part][row][column] =
              Number::value(static_cast<uint16_t>(words[row][column] >> (16 * part)));
        }
      }
    }
  }

  uint32_t words_[8][16][16];
};

// The parts of a number, the greater first. NaN and infinity are in the first part alone.
template <typename Number>
struct Parts {
  uint16_t part[2];
  explicit Parts(float x) {
    part[0] = Number::from(x);
    const float first = Number::value(part[0]);
    part[1] = std::isfinite(first) ? Number::from(x - first) : uint16_t{0};
  }
};

template <typename Number, int kParts>
void pack_rows(const float* const* rows, int n_rows, int64_t count, float* to) {
  const int64_t steps = (count + kUnitDepth - 1) / kUnitDepth;
  std::memset(to, 0, static_cast<size_t>(steps * kParts * kUnitWords) * sizeof(float));
  for (int row = 0; row < n_rows; ++row) {
    for (int64_t k = 0; k < count; ++k) {
      const Parts<Number> parts(rows[row][k]);
      const int64_t step = k / kUnitDepth, pair = k % kUnitDepth / 2;
      for (int64_t part = 0; part < kParts; ++part) {
        float* word = to + (step * kParts + part) * kUnitWords + pair * kUnitRows + row;
        std::memcpy(reinterpret_cast<std::byte*>(word) + k % 2 * 2, &parts.part[part], 2);
      }
    }
  }
}

template <typename Number, typename Element, int kParts>
void pack_weights(const std::byte* const* rows, int n_rows, int64_t count, uint16_t* to) {
  constexpr int64_t kPart = kUnitWeights * kUnitDepth;
  const int64_t steps = (count + kUnitDepth - 1) / kUnitDepth;
  std::memset(to, 0, static_cast<size_t>(steps * kParts * kPart) * sizeof(uint16_t));
  for (int row = 0; row < n_rows; ++row) {
    for (int64_t k = 0; k < count; ++k) {
      const Parts<Number> parts(Element::load(rows[row] + k * Element::kBytes));
      for (int64_t part = 0; part < kParts; ++part) {
        to[(k / kUnitDepth * kParts + part) * kPart + row * kUnitDepth + k % kUnitDepth] =
            parts.part[part];
      }
    }
  }
}

template <typename Number, typename Element, int kParts>
void pack_columns(const std::byte* const* lines, int n, int64_t columns, float* to,
                  int64_t block_words) {
  for (int64_t first = 0; first < columns; first += kUnitRows, to += block_words) {
    float values[kUnitRows][kUnitDepth] = {};
    const float* rows[kUnitRows];
    for (int64_t row = 0; row < kUnitRows; ++row) {
      rows[row] = values[row];
      for (int k = 0; k < n && first + row < columns; ++k) {
        values[row][k] = Element::load(lines[k] + (first + row) * Element::kBytes);
      }
    }
    pack_rows<Number, kParts>(rows, kUnitRows, kUnitDepth, to);
  }
}

void unpack(const float* sums, int first, int n, const UnitOut& out) {
  for (int row = 0; row < n; ++row) {
    const float factor = out.scales == nullptr ? 1.0f : 1.0f / out.scales[row];
    for (int64_t w = 0; w < out.columns; ++w) {
      const float sum = sums[w * kUnitRows + first + row] * factor;
      const float value = out.bias == nullptr ? sum : sum + out.bias[w];
      float& to = out.at[row * out.stride + w];
      to = out.add ? to + value : value;
    }
  }
}

void nothing() {}

template <typename Element>
constexpr int kBf16Parts = Element::kBytes == 1 || std::is_same_v<Element, Bf16Element> ? 1 : 2;

constexpr UnitNumbers kBf16 = {
    .type = DType::bf16,
    .pack_rows = {pack_rows<Bf16Number, 1>, pack_rows<Bf16Number, 2>},
    .pack_weights = per_type<UnitNumbers::PackWeights>(
        []<typename T>() { return pack_weights<Bf16Number, T, kBf16Parts<T>>; }),
    .pack_columns = per_type<UnitNumbers::PackColumns>(
        []<typename T>() { return pack_columns<Bf16Number, T, kBf16Parts<T>>; }),
    .multiply = matrix::kMultiply<PlainTiles<Bf16Number>>,
};

constexpr UnitNumbers kF16 = {
    .type = DType::f16,
    .pack_rows = {pack_rows<F16Number, 1>, pack_rows<F16Number, 2>},
    .pack_weights = matrix::wide_types<UnitNumbers::PackWeights>(
        pack_weights<F16Number, F32Element, 2>, pack_weights<F16Number, F16Element, 1>),
    .pack_columns = matrix::wide_types<UnitNumbers::PackColumns>(
        pack_columns<F16Number, F32Element, 2>, pack_columns<F16Number, F16Element, 1>),
    .multiply = matrix::kMultiply<PlainTiles<F16Number>>,
};

}  // namespace

const MatrixUnit kPlainMatrixUnit = {nothing, nothing, kBf16, nullptr, unpack};
const MatrixUnit kPlainF16MatrixUnit = {nothing, nothing, kBf16, &kF16, unpack};

}  // namespace fp8kv
