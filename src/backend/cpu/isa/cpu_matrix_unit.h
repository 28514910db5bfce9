// Products by a matrix unit (AMX): sums of 16 rows of weights and 16 rows of activations at once,
// 32 numbers of 16 bits of each at a step.
//
// A unit multiplies numbers of 16 bits: bf16, and some units f16 too. Everything else is made of
// parts. By bf16: one part of bf16 and FP8, exactly; two of f16, exactly (11 bits are 8 and 3); two
// of f32, which keep 16 bits of 24. Of two parts each, the product of the lesser ones is left out:
// it is below 2^-18 of the whole. By f16: one part of f16, exactly; two of f32, which keep 22 bits
// where both parts are in the normal range, and else are off by 2^-25 at most. So rows of f32 are
// multiplied by a power of two before that brings their largest number to f16_scale's range.
//
// A sum adds up its steps in ascending order, so that it has the same bits whatever is beside it,
// and however many rows there are. Numbers below 2^-126 count as zero.
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

#include "backend/cpu/isa/cpu_per_type.h"

namespace fp8kv {

inline constexpr int kUnitRows = 16;
inline constexpr int kUnitWeights = 32;
inline constexpr int kUnitDepth = 32;
// Words of 4 bytes in 16 rows of a step.
inline constexpr int kUnitWords = kUnitRows * kUnitDepth / 2;
inline constexpr int kUnitSums = kUnitRows * kUnitWeights;

// Of what has `dtype`, made of numbers of the type `of`.
constexpr int parts_of(DType dtype, DType of = DType::bf16) {
  return dtype == DType::f32 || (dtype == DType::f16 && of == DType::bf16) ? 2 : 1;
}

// The power of two that brings a row of f32, whose largest magnitude has these bits, within
// [2^14, 2^15), or as near to it as its reciprocal is a normal number too. 1 for a row of zeros or
// with what is no number.
inline float f16_scale(uint32_t largest_bits) {
  const int exponent = static_cast<int>(largest_bits >> 23) - 127;
  if (largest_bits == 0 || exponent == 128) return 1.0f;
  return std::ldexp(1.0f, std::min(14 - exponent, 126));
}

// 32 rows of weights as `multiply` finds them: packed, or one part where it lies already.
struct UnitWeights {
  const std::byte* at;
  int64_t row_bytes;   // from a row to the next
  int64_t half_bytes;  // from row 0 to row 16; 0: there are 16 rows only
  int64_t part_bytes;
  int64_t step_bytes;
};

constexpr UnitWeights packed_weights(const void* at, int parts) {
  constexpr int64_t kHalf = kUnitRows * kUnitDepth * 2;
  return {static_cast<const std::byte*>(at), kUnitDepth * 2, kHalf, 2 * kHalf, 2 * kHalf * parts};
}

// Where the sums of a block of rows are: those of 16 weights and 16 rows are 16 rows of 64 bytes.
struct UnitSums {
  float* at;
  int64_t row_bytes;     // from a weight to the next
  int64_t half_floats;   // from weight 0 to weight 16
  int64_t block_floats;  // from a block of rows to the next
};

constexpr UnitSums packed_sums(float* at) {
  return {at, kUnitRows * 4, kUnitWords, kUnitSums};
}

// Where products go: rows `stride` floats apart.
struct UnitOut {
  float* at;
  int64_t stride;
  int64_t columns;                // up to kUnitWeights
  const float* bias = nullptr;    // added to each row; null: nothing
  bool add = false;               // to what is there
  const float* scales = nullptr;  // of the rows, by which sums are divided first; null: 1
};

// What will be multiplied next, to be fetched meanwhile.
struct UnitAhead {
  // 64 bytes of each of 32 rows of weights in a step, for the first rows. Null: nothing.
  const std::byte* weights = nullptr;
  int64_t row_bytes = 0;
  // Lines of 64 bytes in a step.
  const float* rows = nullptr;
  int lines = 0;
  // Some pieces in a step.
  const std::byte* const* pieces = nullptr;
  int64_t n_pieces = 0;
  int64_t in_step = 0;
  int64_t piece_bytes = 0;
};

// Products of numbers of one type.
struct UnitNumbers {
  // `count` elements of n_rows <= 16 rows; the rest of 16 rows and of whole steps is zero.
  using PackRows = void (*)(const float* const* rows, int n_rows, int64_t count, float* to);
  // `count` numbers of 32 rows, or of the first 16, at any alignment; the rest of whole steps is
  // zero.
  using PackWeights = void (*)(const std::byte* const* rows, int n_rows, int64_t count,
                               uint16_t* to);
  // n <= 32 numbers each of `columns` rows of a step, which lie the other way: lines[i] has element
  // i of all of them, at any alignment. The rest of 32 and of 16 columns is zero. Blocks of 16
  // rows are `block_words` apart.
  using PackColumns = void (*)(const std::byte* const* lines, int n, int64_t columns, float* to,
                               int64_t block_words);
  // Sums of `blocks` blocks of rows, `block_words` words apart; added to where `add`.
  using Multiply = void (*)(const UnitWeights& weights, int64_t steps, const float* rows,
                            int64_t blocks, int64_t block_words, const UnitSums& sums, bool add,
                            const UnitAhead& ahead);

  DType type;                         // bf16 or f16
  PackRows pack_rows[2];              // in one part, and in two
  PerType<PackWeights> pack_weights;  // in parts_of; by f16 of f32 and f16 alone
  PerType<PackColumns> pack_columns;  // the same
  // [parts of weights - 1][parts of rows - 1]
  std::array<std::array<Multiply, 2>, 2> multiply;
};

struct MatrixUnit {
  // What a thread has to do before UnitNumbers::Multiply and after it.
  using Turn = void (*)();
  // Rows [first, first + n) of a block of packed sums.
  using Unpack = void (*)(const float* sums, int first, int n, const UnitOut& out);

  Turn begin;
  Turn end;
  UnitNumbers bf16;
  const UnitNumbers* f16;  // null: it multiplies none
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

// Whether one product of f16 numbers has the same bits by both. REQUIRES both to have them.
bool same_f16_product(const MatrixUnit& one, const MatrixUnit& other);

// By plain C++, with the bits of AMX, and of AMX-FP16: for machines without it, and for tests.
extern const MatrixUnit kPlainMatrixUnit;
extern const MatrixUnit kPlainF16MatrixUnit;
#if defined(__x86_64__)
// REQUIRES AVX-512 with BF16 and VBMI, and leave to use AMX: take_amx.
extern const MatrixUnit kAmxMatrixUnit;
// REQUIRES take_amx_fp16 too.
extern const MatrixUnit kAmxF16MatrixUnit;
// Whether the processor and the system have AMX with BF16; asks the system to let this process use
// it.
bool take_amx();
// Whether it has FP16 too, whose products are the plain ones: nobody has run this on such a
// processor, so that one product is compared with the plain one before any is trusted.
bool take_amx_fp16();
#endif

}  // namespace fp8kv
