// Tiles of queries: which sequence, rows and query heads a block works on.
#pragma once

#include "kernels/launch_types.h"

namespace fp8kv::FP8KV_GPU {

// A tile's columns begin at `first_col`, counted over the rows [first_row, end_row) of a sequence
// and over the query heads of a KV head.
struct QueryTile {
  int sequence;
  int first_row;
  int end_row;
  int first_col;
};

// The queries of a tile and KV head, by the column of the tile that they are in.
struct TileQueries {
  QueryTile tile;
  int kv_head;
  int share;  // query heads of a KV head
  int n_heads;

  __device__ inline int row(int col) const {
    return tile.first_row + (tile.first_col + col) / share;
  }
  __device__ inline int head(int col) const {
    return kv_head * share + (tile.first_col + col) % share;
  }
  __device__ inline bool has(int col) const { return row(col) < tile.end_row; }
  // The first element of a query, or of its result, in rows of n_heads heads of `dim`.
  __device__ inline int64_t place(int col, int dim) const {
    return (static_cast<int64_t>(row(col)) * n_heads + head(col)) * dim;
  }
};

// Tile `number` of all sequences' tiles with `cols` columns each; sequence -1 past the last. Later
// tiles see more tokens.
__device__ inline QueryTile tile_at(const Rows& rows, int share, int cols, int number) {
  for (int sequence = 0; sequence < rows.n_seqs; ++sequence) {
    const int first = rows.indptr[sequence], end = rows.indptr[sequence + 1];
    const int tiles = ((end - first) * share + cols - 1) / cols;
    if (number < tiles) return {sequence, first, end, number * cols};
    number -= tiles;
  }
  return {-1, 0, 0, 0};
}

}  // namespace fp8kv::FP8KV_GPU
