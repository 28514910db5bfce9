// Products by a matrix unit (AMX): sums of 16 rows of weights and 16 rows of activations at once. A
// step takes 32 numbers of 16 bits from each row.
//
// A unit multiplies 16-bit numbers: bf16, and some units f16 too. Other types are split into parts.
//   bf16 units: bf16 and FP8 are one part, exactly. f16 is two, exactly (11 bits are 8 and 3). f32
//   is two, which keep 16 bits of 24. If both operands have two parts, the product of the lesser
//   parts is omitted: it is below 2^-18 of the whole.
//   f16 units: f16 is one part, exactly. f32 is two, which keep 22 bits if both parts are in the
//   normal range; else the error is 2^-25 at most. So each row of f32 is first multiplied by a
//   power of two that brings its largest number to f16_scale's range.
//
// A sum adds its steps in ascending order. So it has the same bits for any number of rows, and
// whatever its neighbours are. Numbers below 2^-126 count as zero.
//
// Layouts:
//   rows     [steps][parts][16 pairs][16 rows] words: pairs are elements 2p and 2p + 1 of a step
//   weights  [steps][parts][2 halves][16 rows][32] numbers: 32 rows of weights
//   sums     [blocks of rows][2 halves][16 weights][16 rows] f32
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "backend/cpu/isa/common/cpu_per_type.h"

namespace fp8kv {

inline constexpr int kUnitRows = 16;
inline constexpr int kUnitWeights = 32;
inline constexpr int kUnitDepth = 32;
// Words of 4 bytes in 16 rows of a step.
inline constexpr int kUnitWords = kUnitRows * kUnitDepth / 2;
inline constexpr int kUnitSums = kUnitRows * kUnitWeights;

// Parts of a number of type `dtype` on a unit that multiplies type `of`.
constexpr int parts_of(DType dtype, DType of = DType::bf16) {
  return dtype == DType::f32 || (dtype == DType::f16 && of == DType::bf16) ? 2 : 1;
}

// The power of two that brings a row of f32 into [2^14, 2^15), or as near as its reciprocal stays a
// normal number. Takes the bits of the row's largest magnitude. 1 for a row of zeros, or with NaN
// or infinity.
inline float f16_scale(uint32_t largest_bits) {
  const int exponent = static_cast<int>(largest_bits >> 23) - 127;
  if (largest_bits == 0 || exponent == 128) return 1.0f;
  return std::ldexp(1.0f, std::min(14 - exponent, 126));
}

// 32 rows of weights for `multiply`: packed, or one part read in place.
struct UnitWeights {
  const std::byte* at;
  int64_t row_bytes;   // from a row to the next
  int64_t half_bytes;  // from row 0 to row 16; 0: only 16 rows
  int64_t part_bytes;
  int64_t step_bytes;
};

constexpr UnitWeights packed_weights(const void* at, int parts) {
  constexpr int64_t kHalf = kUnitRows * kUnitDepth * 2;
  return {static_cast<const std::byte*>(at), kUnitDepth * 2, kHalf, 2 * kHalf, 2 * kHalf * parts};
}

// Layout of a block's sums. The sums of 16 weights with 16 rows are 16 lines of 64 bytes.
struct UnitSums {
  float* at;
  int64_t row_bytes;     // from a weight to the next
  int64_t half_floats;   // from weight 0 to weight 16
  int64_t block_floats;  // from a block of rows to the next
};

constexpr UnitSums packed_sums(float* at) {
  return {at, kUnitRows * 4, kUnitWords, kUnitSums};
}

// Destination of products: rows `stride` floats apart.
struct UnitOut {
  float* at;
  int64_t stride;
  int64_t columns;                // up to kUnitWeights
  const float* bias = nullptr;    // added to each row; null: nothing
  bool add = false;               // add to the values there
  const float* scales = nullptr;  // of the rows; divide the sums first; null: 1
};

// Operands of the next product, fetched during this one.
struct UnitAhead {
  // 64 bytes of each of 32 rows of weights per step, during the first rows. Null: nothing.
  const std::byte* weights = nullptr;
  int64_t row_bytes = 0;
  // Lines of 64 bytes per step.
  const float* rows = nullptr;
  int lines = 0;
  // Pieces, `in_step` of them per step.
  const std::byte* const* pieces = nullptr;
  int64_t n_pieces = 0;
  int64_t in_step = 0;
  int64_t piece_bytes = 0;
};

// Products of numbers of one type, bf16 or f16.
struct UnitNumbers {
  // Packs `count` elements of n_rows <= 16 rows, with zeros for missing rows and up to whole steps.
  using PackRows = void (*)(const float* const* rows, int n_rows, int64_t count, float* to);
  // Packs `count` numbers of 32 rows, or of the first 16, at any alignment, with zeros up to whole
  // steps.
  using PackWeights = void (*)(const std::byte* const* rows, int n_rows, int64_t count,
                               uint16_t* to);
  // Packs a step of `columns` rows that lie transposed: lines[i] has element i of all of them, at
  // any alignment. There are n <= 32 lines. Missing lines and columns, up to 32 and to a multiple
  // of 16, are zero. Blocks of 16 rows are `block_words` apart.
  using PackColumns = void (*)(const std::byte* const* lines, int n, int64_t columns, float* to,
                               int64_t block_words);
  // Multiplies `blocks` blocks of rows, `block_words` words apart. With `add`, adds to the sums.
  using Multiply = void (*)(const UnitWeights& weights, int64_t steps, const float* rows,
                            int64_t blocks, int64_t block_words, const UnitSums& sums, bool add,
                            const UnitAhead& ahead);

  DType type;                         // bf16 or f16
  PackRows pack_rows[2];              // in one part, and in two
  PerType<PackWeights> pack_weights;  // in parts_of parts; an f16 unit: f32 and f16 alone
  PerType<PackColumns> pack_columns;  // see pack_weights
  // [parts of weights - 1][parts of rows - 1]
  std::array<std::array<Multiply, 2>, 2> multiply;
};

struct MatrixUnit {
  // A thread's work before UnitNumbers::Multiply and after it.
  using Turn = void (*)();
  // Writes rows [first, first + n) of a block of packed sums.
  using Unpack = void (*)(const float* sums, int first, int n, const UnitOut& out);

  Turn begin;
  Turn end;
  UnitNumbers bf16;
  const UnitNumbers* f16;  // null: the unit does not multiply f16
  Unpack unpack;
};

// A thread's turn at the unit.
class UnitTurn {
 public:
  explicit UnitTurn(const MatrixUnit& unit) : unit_(unit) { unit_.begin(); }
  ~UnitTurn() { unit_.end(); }
  UnitTurn(const UnitTurn&) = delete;
  UnitTurn& operator=(const UnitTurn&) = delete;

 private:
  const MatrixUnit& unit_;
};

// Whether a product of f16 numbers has the same bits on both units. REQUIRES that both multiply
// f16.
bool same_f16_product(const MatrixUnit& one, const MatrixUnit& other);

// Plain C++ with the bits of AMX and of AMX-FP16: for machines without them, and for tests.
extern const MatrixUnit kPlainMatrixUnit;
extern const MatrixUnit kPlainF16MatrixUnit;
#if defined(__x86_64__)
// REQUIRES AVX-512 with BF16 and VBMI, and permission to use AMX: take_amx.
extern const MatrixUnit kAmxMatrixUnit;
// REQUIRES take_amx_fp16 too.
extern const MatrixUnit kAmxF16MatrixUnit;
// Whether the processor and the system have AMX with BF16; asks the system to let this process use
// it.
bool take_amx();
// Whether the processor also has FP16, with the products of the plain unit. Nobody has run this on
// such a processor. So one product is compared with the plain unit's before any is trusted.
bool take_amx_fp16();
#endif

}  // namespace fp8kv
