// A slab of tokens of attention_wide. A warp takes some rows of the cache into registers, a piece
// of a row a lane at a time. Later it stores them as 16-bit operands in shared memory.
#pragma once

#include "kernels/attention/attention.cuh"
#include "kernels/attention/chosen.cuh"
#include "kernels/attention/wide_operands.cuh"

namespace fp8kv::FP8KV_GPU {

// The tokens of a sequence and KV head, as places: see ChosenTokens.
struct WideTokens {
  const PagedKv& kv;
  const int32_t* pages;  // of the sequence
  int kv_head;
  ChosenTokens chosen;

  // The number of a token's row in the cache.
  __device__ inline int64_t row(int place) const {
    const int token = chosen.position(place);
    return kv.row(pages[token / kv.page_size], kv_head, token % kv.page_size);
  }
};

template <typename Cache>
class WideSlab {
 public:
  // Loads the tokens from `first` on; tokens from `end` on become zero.
  //   pool: K's or V's, with `dim` elements in a row
  __device__ inline void fetch(const WideTokens& tokens, Visible places, const void* pool,
                               int dim) {
    const int n_pieces = dim / kPerPiece;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int place = places.begin + warp_index() * kRows + i;
      const bool valid = place < places.end;
      const int64_t row = valid ? tokens.row(place) : 0;
      const uint32_t* from = static_cast<const uint32_t*>(pool) + row * n_pieces * 4;
#pragma unroll
      for (int pass = 0; pass < kPasses; ++pass) {
        const int piece = pass * kWarp + lane_index();
        Piece got = {};
        if (valid && piece < n_pieces) got = load_vec<4>(from + 4 * piece);
#pragma unroll
        for (int j = 0; j < 4; ++j) words_[i][pass][j] = got.x[j];
      }
    }
  }

  // Stores what `fetch` has loaded.
  //   to [kWideTokens] rows of operands
  __device__ inline void store(int dim, unsigned char* to) const {
    const int n_pieces = dim / kPerPiece;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      unsigned char* row = to + (warp_index() * kRows + i) * pitch_of(dim);
#pragma unroll
      for (int pass = 0; pass < kPasses; ++pass) {
        const int piece = pass * kWarp + lane_index();
        if (piece < n_pieces) store_piece(words_[i][pass], piece, row);
      }
    }
  }

 private:
  static constexpr int kPerPiece = kVector<Cache>;
  static constexpr int kRows = kWideTokens / kWideWarps;  // of a warp
  static constexpr int kPasses = (kMostWideDim / kPerPiece + kWarp - 1) / kWarp;

  using Piece = Vec<uint32_t, 4>;

  static __device__ inline void store_piece(const uint32_t* words, int piece, unsigned char* row) {
    auto* to = reinterpret_cast<uint32_t*>(row);
    if constexpr (kIsFp8<Cache>) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        Piece decoded;
        Fp8Pairs<Cache::kFormat>::decode(words[2 * half], decoded.x);
        Fp8Pairs<Cache::kFormat>::decode(words[2 * half + 1], decoded.x + 2);
        store_vec(to + 4 * (2 * piece + half), decoded);
      }
    } else {
      store_vec(to + 4 * piece, Piece{words[0], words[1], words[2], words[3]});
    }
  }

  uint32_t words_[kRows][kPasses][4];
};

}  // namespace fp8kv::FP8KV_GPU
