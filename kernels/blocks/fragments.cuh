// Makes operands of matrix instructions from rows of a KV cache, without a transpose. The 16 rows
// of A are tokens (for K) or dimensions (for V); the columns of B are query heads:
//   scores^T [token, head] = K [token, dim] Q^T [dim, head]
//   out^T    [dim, head]   = V^T [dim, token] P^T [token, head]
// The terms of a product may come in any order, as long as A and B have the same order. So a lane
// takes the dimensions of K that it can load in whole pieces, and Q is loaded in the same order.
// For V, an operand needs the values of two tokens side by side: one byte selection pairs them for
// two dimensions at a time.
#pragma once

#include "kernels/blocks/vec.cuh"

namespace fp8kv::FP8KV_GPU {

// Converts four FP8 codes to two pairs of f16. These f16 are the codes' values times 2^-exponent();
// the caller multiplies by 2^exponent() together with the scale. Exact for every finite code. The
// hardware's conversion keeps NaN. The integer conversion makes it 480 or -0, but a calibrated
// cache holds no NaN.
template <Fp8Format F>
struct Fp8Pairs {
  static constexpr bool kHardware = F == Fp8Format::e4m3fn && kHardwareFp8;

  // Moved into an f16, the bits of a code give 2^-kShift times the code's value. The code's
  // subnormals are subnormal in f16 too. Where matrix products flush these to 0 (kProductsFlush),
  // the pair is multiplied by 2^kShift right away. e5m2 has f16's exponent and needs no shift.
  static constexpr int kShift = F == Fp8Format::e5m2fnuz ? 0 : 15 - fp8_spec(F).bias;
  static constexpr bool kIsF16Cut = fp8_spec(F).mantissa_bits == 2;  // an f16 without its low byte

  static __device__ constexpr int exponent() { return kHardware || kProductsFlush ? 0 : kShift; }

  static __device__ inline void decode(uint32_t codes, uint32_t* pairs) {
    if constexpr (kHardware) {
      convert_e4m3(codes, pairs);
    } else if constexpr (F == Fp8Format::e5m2fnuz) {
      // e5m2fnuz uses the exponent that means infinity in f16: no shift will do.
      for (int i = 0; i < 2; ++i) {
        const auto code = [&](int j) {
          return static_cast<uint32_t>(
              f16_code(fp8_decode<F>(static_cast<uint8_t>(codes >> 8 * j))));
        };
        pairs[i] = code(2 * i) | code(2 * i + 1) << 16;
      }
    } else {
      // Puts each code into the high byte of a half. An e5m2 code is the high byte of an f16;
      // e4m3's exponent and mantissa go one bit further down.
      const uint32_t halves[2] = {select_bytes<0x1404>(codes, 0), select_bytes<0x3424>(codes, 0)};
      for (int i = 0; i < 2; ++i) {
        pairs[i] =
            kIsF16Cut ? halves[i] : (halves[i] & 0x80008000u) | (halves[i] >> 1 & 0x3F803F80u);
        if constexpr (kProductsFlush && kShift > 0) pairs[i] = scaled_pair<kShift>(pairs[i]);
      }
    }
  }
};

// The operand type of a cache's elements.
template <typename Cache>
struct Operand {
  using Type = Cache;  // F16 or Bf16
  static __device__ constexpr int exponent() { return 0; }
};
template <Fp8Format F>
struct Operand<Fp8<F>> {
  using Type = F16;
  static __device__ constexpr int exponent() { return Fp8Pairs<F>::exponent(); }
};

// The largest of 16, 8, 4 and 2 bytes that divides a lane's bytes of a row.
constexpr int piece_bytes(int lane_bytes) {
  return lane_bytes % 16 == 0 ? 16 : lane_bytes % 8 == 0 ? 8 : lane_bytes % 4 == 0 ? 4 : 2;
}

// The elements of a row that a lane has: the row is cut into pieces of kPieceBytes, and lane p %
// kLanes has piece p.
template <typename Cache, int kHeadDim, int kLanes>
struct RowPieces {
  static constexpr int kElements = kHeadDim / kLanes;
  static constexpr int kBytes = kElements * static_cast<int>(sizeof(Cache));
  static constexpr int kPieceBytes = piece_bytes(kBytes);
  static constexpr int kPieces = kBytes / kPieceBytes;
  static constexpr int kPerPiece = kPieceBytes / static_cast<int>(sizeof(Cache));
  static constexpr int kWords = (kBytes + 3) / 4;

  // Offset in the row of a lane's piece `piece`, in bytes.
  static __device__ inline int offset(int piece, int lane) {
    return (piece * kLanes + lane) * kPieceBytes;
  }
  // Index in the row of a lane's element.
  static __device__ inline int place(int element, int lane) {
    return (element / kPerPiece * kLanes + lane) * kPerPiece + element % kPerPiece;
  }
};

template <typename Cache, int kHeadDim>
using KeyPieces = RowPieces<Cache, kHeadDim, 4>;
inline constexpr int kDimLanes = 16 / Mma::kRowsPerLane;
template <typename Cache, int kHeadDim>
using ValuePieces = RowPieces<Cache, kHeadDim, kDimLanes>;

// Operand A for step `step` of the scores, from the words of the lane's tokens.
//   words [kRowsPerLane][kWords], a [2 * kRowsPerLane]
template <typename Cache, int kWords>
__device__ inline void key_operand(const uint32_t (*words)[kWords], int step, uint32_t* a) {
#pragma unroll
  for (int row = 0; row < Mma::kRowsPerLane; ++row) {
    if constexpr (kIsFp8<Cache>) {
      Fp8Pairs<Cache::kFormat>::decode(words[row][step], a + 2 * row);
    } else {
      a[2 * row] = words[row][2 * step];
      a[2 * row + 1] = words[row][2 * step + 1];
    }
  }
}

// Pairs up two elements, 2 * `two` (e = 0) and 2 * `two` + 1 (e = 1), of four tokens. pairs[e][0]
// holds the first two tokens and pairs[e][1] the last two.
//   words [4][kWords]
template <typename Cache, int kWords>
__device__ inline void value_pairs(const uint32_t (*words)[kWords], int two, uint32_t (*pairs)[2]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const uint32_t* first = words[2 * half];
    const uint32_t* second = words[2 * half + 1];
    if constexpr (kIsFp8<Cache>) {
      const int word = two / 2;
      const uint32_t codes = two % 2 == 0 ? select_bytes<0x5140>(first[word], second[word])
                                          : select_bytes<0x7362>(first[word], second[word]);
      uint32_t both[2];
      Fp8Pairs<Cache::kFormat>::decode(codes, both);
      pairs[0][half] = both[0];
      pairs[1][half] = both[1];
    } else {
      pairs[0][half] = select_bytes<0x5410>(first[two], second[two]);
      pairs[1][half] = select_bytes<0x7632>(first[two], second[two]);
    }
  }
}

// acc [kColFrags][kHeadDim / 16][4] += V^T P^T for 16 tokens and kColFrags operands of weights.
template <typename Cache, int kHeadDim, int kWords, int kColFrags>
__device__ inline void add_values(const uint32_t (*words)[kWords], const uint32_t (*weights)[2],
                                  float (*acc)[kHeadDim / 16][4]) {
  using T = typename Operand<Cache>::Type;
#pragma unroll
  for (int two = 0; two < kHeadDim / kDimLanes / 2; ++two) {
    uint32_t pairs[2][2];
    value_pairs<Cache, kWords>(words, two, pairs);
#pragma unroll
    for (int frag = 0; frag < kColFrags; ++frag) {
      if constexpr (Mma::kRowsPerLane == 2) {
        Mma::run<T>(acc[frag][two], pairs[0], weights[frag]);
      } else {
        Mma::run<T>(acc[frag][2 * two], pairs[0], weights[frag]);
        Mma::run<T>(acc[frag][2 * two + 1], pairs[1], weights[frag]);
      }
    }
  }
}

// The dimension of element i of accumulator `index` of add_values.
template <typename Cache, int kHeadDim>
__device__ inline int value_dim(int index, int i) {
  const int row = Mma::acc_row(lane_index(), i);
  return ValuePieces<Cache, kHeadDim>::place(index * Mma::kRowsPerLane + row / kDimLanes,
                                             row % kDimLanes);
}

}  // namespace fp8kv::FP8KV_GPU
