// The product of a matrix unit, written once for all units. Tiles are a unit's registers: 16 rows
// of 64 bytes each.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/cpu/isa/common/cpu_matrix_unit.h"

namespace fp8kv::matrix {

// The eight tiles: sums [row block][half], then weights [half], then rows [row block].
constexpr int sums_tile(int block, int half) {
  return 2 * block + half;
}
inline constexpr int kWeightTile = 4, kRowTile = 6;
inline constexpr int64_t kPackedRow = 64, kLineFloats = 16;

template <int kHalves, typename Tiles>
[[gnu::always_inline]] inline void load_weights(Tiles& tiles, const std::byte* at,
                                                const UnitWeights& weights) {
  tiles.template load<kWeightTile>(at, weights.row_bytes);
  if constexpr (kHalves == 2) {
    tiles.template load<kWeightTile + 1>(at + weights.half_bytes, weights.row_bytes);
  }
}

template <int kBlocks, typename Tiles>
[[gnu::always_inline]] inline void load_rows(Tiles& tiles, const float* rows, int64_t block_words) {
  tiles.template load_once<kRowTile>(rows, kPackedRow);
  if constexpr (kBlocks == 2) {
    tiles.template load_once<kRowTile + 1>(rows + block_words, kPackedRow);
  }
}

template <int kBlocks, int kHalves, typename Tiles>
[[gnu::always_inline]] inline void multiply_tiles(Tiles& tiles) {
  tiles.template multiply<sums_tile(0, 0), kWeightTile, kRowTile>();
  if constexpr (kHalves == 2) {
    tiles.template multiply<sums_tile(0, 1), kWeightTile + 1, kRowTile>();
  }
  if constexpr (kBlocks == 2) {
    tiles.template multiply<sums_tile(1, 0), kWeightTile, kRowTile + 1>();
  }
  if constexpr (kBlocks == 2 && kHalves == 2) {
    tiles.template multiply<sums_tile(1, 1), kWeightTile + 1, kRowTile + 1>();
  }
}

// Multiplies the lesser part of the weights first and the lesser part of the rows last. So each
// tile is loaded once for consecutive products.
template <typename Tiles, int kWeightParts, int kRowParts, int kBlocks, int kHalves>
[[gnu::always_inline]] inline void step(Tiles& tiles, const UnitWeights& weights,
                                        const std::byte* at, const float* rows,
                                        int64_t block_words) {
  load_rows<kBlocks>(tiles, rows, block_words);
  if constexpr (kWeightParts == 2) {
    load_weights<kHalves>(tiles, at + weights.part_bytes, weights);
    multiply_tiles<kBlocks, kHalves>(tiles);
  }
  load_weights<kHalves>(tiles, at, weights);
  multiply_tiles<kBlocks, kHalves>(tiles);
  if constexpr (kRowParts == 2) {
    load_rows<kBlocks>(tiles, rows + kUnitWords, block_words);
    multiply_tiles<kBlocks, kHalves>(tiles);
  }
}

// Calls with<tile>(address of its sums) for each tile of sums.
template <int kBlocks, int kHalves, typename With>
[[gnu::always_inline]] inline void for_sums(const UnitSums& sums, const With& with) {
  const auto at = [&](int block, int half) {
    return sums.at + block * sums.block_floats + half * sums.half_floats;
  };
  with.template operator()<sums_tile(0, 0)>(at(0, 0));
  if constexpr (kHalves == 2) with.template operator()<sums_tile(0, 1)>(at(0, 1));
  if constexpr (kBlocks == 2) with.template operator()<sums_tile(1, 0)>(at(1, 0));
  if constexpr (kBlocks == 2 && kHalves == 2) {
    with.template operator()<sums_tile(1, 1)>(at(1, 1));
  }
}

// Fetches this step's share of `ahead`, rows into the second-level cache.
[[gnu::always_inline]] inline void fetch(const UnitAhead& ahead, int64_t step) {
  for (int i = 0; i < ahead.lines; ++i) {
    __builtin_prefetch(ahead.rows + (step * ahead.lines + i) * kLineFloats, 0, 2);
  }
  const int64_t end = std::min(ahead.n_pieces, (step + 1) * ahead.in_step);
  for (int64_t i = step * ahead.in_step; i < end; ++i) {
    for (int64_t at = 0; at < ahead.piece_bytes; at += 64) {
      __builtin_prefetch(ahead.pieces[i] + at, 0, 2);
    }
  }
  if (ahead.weights == nullptr) return;
  for (int row = 0; row < kUnitWeights; ++row) {
    __builtin_prefetch(ahead.weights + row * ahead.row_bytes + step * kUnitDepth * 2);
  }
}

template <typename Tiles, int kWeightParts, int kRowParts, int kBlocks, int kHalves>
[[gnu::always_inline]] inline void multiply_blocks(const UnitWeights& weights, int64_t steps,
                                                   const float* rows, int64_t block_words,
                                                   const UnitSums& sums, bool add,
                                                   const UnitAhead& ahead) {
  Tiles tiles;
  for_sums<kBlocks, kHalves>(sums, [&]<int kTile>(const float* tile) {
    if (add) {
      tiles.template load<kTile>(tile, sums.row_bytes);
    } else {
      tiles.template zero<kTile>();
    }
  });
  const std::byte* at = weights.at;
  for (int64_t i = 0; i < steps; ++i) {
    fetch(ahead, i);
    step<Tiles, kWeightParts, kRowParts, kBlocks, kHalves>(tiles, weights, at, rows, block_words);
    at += weights.step_bytes;
    rows += kRowParts * kUnitWords;
  }
  for_sums<kBlocks, kHalves>(
      sums, [&]<int kTile>(float* tile) { tiles.template store<kTile>(tile, sums.row_bytes); });
}

template <typename Tiles, int kWeightParts, int kRowParts, int kHalves>
[[gnu::always_inline]] inline void multiply_all(const UnitWeights& weights, int64_t steps,
                                                const float* rows, int64_t blocks,
                                                int64_t block_words, const UnitSums& sums, bool add,
                                                const UnitAhead& ahead) {
  UnitSums to = sums;
  UnitAhead fetched = ahead;
  for (; blocks >= 2; blocks -= 2, rows += 2 * block_words, to.at += 2 * sums.block_floats) {
    multiply_blocks<Tiles, kWeightParts, kRowParts, 2, kHalves>(weights, steps, rows, block_words,
                                                                to, add, fetched);
    fetched.weights = nullptr;
    fetched.rows += steps * fetched.lines * kLineFloats;
    fetched.pieces += steps * fetched.in_step;
    fetched.n_pieces -= steps * fetched.in_step;
  }
  if (blocks == 1) {
    multiply_blocks<Tiles, kWeightParts, kRowParts, 1, kHalves>(weights, steps, rows, block_words,
                                                                to, add, fetched);
  }
}

// See UnitNumbers::Multiply.
template <typename Tiles, int kWeightParts, int kRowParts>
void multiply(const UnitWeights& weights, int64_t steps, const float* rows, int64_t blocks,
              int64_t block_words, const UnitSums& sums, bool add, const UnitAhead& ahead) {
  if (weights.half_bytes == 0) {
    multiply_all<Tiles, kWeightParts, kRowParts, 1>(weights, steps, rows, blocks, block_words, sums,
                                                    add, ahead);
  } else {
    multiply_all<Tiles, kWeightParts, kRowParts, 2>(weights, steps, rows, blocks, block_words, sums,
                                                    add, ahead);
  }
}

// See UnitNumbers::multiply.
template <typename Tiles>
inline constexpr std::array<std::array<UnitNumbers::Multiply, 2>, 2> kMultiply = {
    {{multiply<Tiles, 1, 1>, multiply<Tiles, 1, 2>},
     {multiply<Tiles, 2, 1>, multiply<Tiles, 2, 2>}}};

// The functions of a unit that multiplies f16 numbers.
template <typename Function>
constexpr PerType<Function> wide_types(Function f32, Function f16) {
  return {f32, f16, nullptr, nullptr, nullptr, nullptr, nullptr};
}

}  // namespace fp8kv::matrix
