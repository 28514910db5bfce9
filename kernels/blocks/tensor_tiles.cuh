// Products on tensor cores. Tiles of x and of the weights come through a ring of slices in shared
// memory, while earlier slices are multiplied.
#pragma once

#include "kernels/blocks/products.cuh"

namespace fp8kv::FP8KV_GPU {

inline constexpr int kTensorWarps = 4;
inline constexpr int kTensorThreads = kTensorWarps * kWarp;
// Elements of a row in a slice. Rows of 64 bytes need no swizzle: the eight lanes that shared
// memory serves at a time read two whole rows, which use every bank once.
inline constexpr int kDepth = 32;
inline constexpr int kPieces = kDepth / 8;  // pieces of a row, 8 elements each

// A block's tile of the result, each warp's part of it, and how many slices are in flight or being
// multiplied.
template <int kTileRows, int kTileCols, int kWarpRows, int kWarpCols, int kRingSlices>
struct Tiling {
  static constexpr int kStages = kRingSlices;
  static constexpr int kRows = kTileRows;
  static constexpr int kCols = kTileCols;
  static constexpr int kRowFrags = kWarpRows / 16;
  static constexpr int kColFrags = kWarpCols / Mma::kCols;
  static constexpr int kWarpsAcross = kTileCols / kWarpCols;
  // Bytes of a slice: x, then weights with elements of kBytes.
  static constexpr int kXBytes = kTileRows * kDepth * 2;
  template <int kBytes>
  static constexpr int kSliceBytes = kXBytes + kTileCols* kDepth* kBytes;
  template <int kBytes>
  static constexpr size_t kSharedBytes = size_t{kStages} * kSliceBytes<kBytes>;
  static_assert(kSharedBytes<2> <= kMostSharedBytes);
  static_assert(kTileRows / kWarpRows * kWarpsAcross == kTensorWarps);

  static __device__ int first_row() { return warp_index() / kWarpsAcross * kWarpRows; }
  static __device__ int first_col() { return warp_index() % kWarpsAcross * kWarpCols; }
};

// Large is for prefill, Small for decode of a few sequences. Reading the weights bounds decode, and
// a matrix of 4096 columns makes no more than 64 blocks. To cover a latency of 700 ns at 3 TB/s, 2
// MB have to be in flight, 32 KB per block. Without asynchronous copies, a deep ring gains nothing.
using Large = Tiling<128, 128, 64, 64, 4>;
using Small = Tiling<32, 64, 32, 16, kHasAsync ? 8 : 4>;

// Row tiles that are computed together, so that their part of x stays in L2 while the weights
// stream by.
inline constexpr int64_t kRowGroup = 8;

struct TilePlace {
  int64_t row;
  int64_t col;
};

__device__ inline TilePlace tile_place(int64_t block, int64_t row_tiles, int64_t col_tiles) {
  const int64_t group = block / (kRowGroup * col_tiles);
  const int64_t left = row_tiles - group * kRowGroup;
  const int64_t height = left < kRowGroup ? left : kRowGroup;
  const int64_t within = block - group * kRowGroup * col_tiles;
  return {group * kRowGroup + within % height, within / height};
}

// Fetches kRows rows of `from` [rows, depth], kDepth elements of kBytes each from `first`; zero
// outside.
template <int kBytes, int kRows>
__device__ inline void fetch_rows(const unsigned char* from, int64_t first_row, int64_t rows,
                                  int64_t first, int64_t depth, unsigned char* slice) {
#pragma unroll
  for (int i = 0; i < (kRows * kPieces + kTensorThreads - 1) / kTensorThreads; ++i) {
    const int piece = i * kTensorThreads + thread_index();
    if (kRows * kPieces % kTensorThreads != 0 && piece >= kRows * kPieces) break;
    const int64_t row = first_row + piece / kPieces;
    const int64_t at = first + piece % kPieces * 8;
    const bool valid = row < rows && at < depth;
    copy_async<8 * kBytes>(slice + piece * 8 * kBytes,
                           valid ? from + (row * depth + at) * kBytes : from, valid);
  }
}

struct alignas(16) Chunk {
  uint32_t words[4];
};

// Weights that are 16-bit numbers. multiply() asks for kBytes per element, and for the 8 elements
// of a piece. The piece belongs to `row` and begins at `depth` of the whole.
struct NumberPieces {
  static constexpr int kBytes = 2;
  const unsigned char* data;

  static __device__ NumberPieces of(const Products&, const ColumnTile& tile) {
    return {static_cast<const unsigned char*>(tile.product.weight)};
  }
  __device__ Chunk at(const unsigned char* piece, int64_t /*row*/, int64_t /*depth*/) const {
    return *reinterpret_cast<const Chunk*>(piece);
  }
};

// acc += the product of one slice. A lane reads 16 bytes of each of its rows: its depths for two
// matrix instructions.
template <typename T, typename Tile, typename Pieces>
__device__ inline void multiply(const unsigned char* slice, const Pieces& pieces, int64_t first_col,
                                int64_t depth, float (*acc)[Tile::kColFrags][4]) {
  const unsigned char* weights = slice + Tile::kXBytes;
  const int row = Mma::row(lane_index()), group = Mma::group(lane_index());
  Chunk b[Tile::kColFrags];
#pragma unroll
  for (int j = 0; j < Tile::kColFrags; ++j) {
    const int at = Tile::first_col() + j * Mma::kCols + row;
    b[j] = pieces.at(weights + (at * kDepth + group * 8) * Pieces::kBytes, first_col + at,
                     depth + group * 8);
  }
#pragma unroll
  for (int i = 0; i < Tile::kRowFrags; ++i) {
    Chunk a[Mma::kRowsPerLane];
#pragma unroll
    for (int r = 0; r < Mma::kRowsPerLane; ++r) {
      const int at = Tile::first_row() + i * 16 + r * 8 + row;
      a[r] = *reinterpret_cast<const Chunk*>(slice + (at * kDepth + group * 8) * 2);
    }
#pragma unroll
    for (int step = 0; step < 2; ++step) {
      uint32_t both[2 * Mma::kRowsPerLane];
#pragma unroll
      for (int r = 0; r < Mma::kRowsPerLane; ++r) {
        both[2 * r] = a[r].words[2 * step];
        both[2 * r + 1] = a[r].words[2 * step + 1];
      }
#pragma unroll
      for (int j = 0; j < Tile::kColFrags; ++j) {
        Mma::run<T>(acc[i][j], both, b[j].words + 2 * step);
      }
    }
  }
}

template <typename T, typename Tile>
__device__ inline void store_tile(const Product& product, int64_t n, int64_t row, int64_t col,
                                  const float (*acc)[Tile::kColFrags][4]) {
#pragma unroll
  for (int i = 0; i < Tile::kRowFrags; ++i) {
#pragma unroll
    for (int j = 0; j < Tile::kColFrags; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int64_t r = row + Tile::first_row() + i * 16 + Mma::acc_row(lane_index(), e);
        const int64_t c = col + Tile::first_col() + j * Mma::kCols + Mma::acc_col(lane_index(), e);
        if (r < n && c < product.out_dim) store_result<T>(product, r, c, acc[i][j][e]);
      }
    }
  }
}

__device__ inline const Products& products_of(const Products& products) {
  return products;
}
__device__ inline const Products& products_of(const CodedProducts& coded) {
  return coded.products;
}

// Computes one block's tile of the result. REQUIRES rows of whole pieces.
// Arguments are Products or CodedProducts, the kernel's own parameter: hipcc would copy them to
// scratch if a function object held them.
template <typename T, typename Tile, typename Pieces, typename Arguments>
__device__ inline void tensor_tile(const Arguments& arguments, int64_t row_tiles,
                                   int64_t col_tiles) {
  const Products& products = products_of(arguments);
  Shared shared;
  const TilePlace place = tile_place(block_index().x, row_tiles, col_tiles);
  const ColumnTile tile = column_tile(products, place.col, Tile::kCols);
  const Pieces pieces = Pieces::of(arguments, tile);
  constexpr int kBytes = Pieces::kBytes;
  auto* ring = shared.take<unsigned char>(Tile::template kSharedBytes<kBytes>);
  const int64_t first_row = place.row * Tile::kRows;
  // `products` is indexed at run time: if `fetch` captured it, hipcc would copy it to scratch.
  const auto* x = static_cast<const unsigned char*>(products.x);
  const int64_t n = products.n, depth = products.in_dim;
  const auto slices = static_cast<int>((depth + kDepth - 1) / kDepth);
  const auto slice_at = [&](int slice) {
    return ring + slice % Tile::kStages * Tile::template kSliceBytes<kBytes>;
  };
  const auto fetch = [&](int slice) {
    if (slice < slices) {
      unsigned char* to = slice_at(slice);
      const int64_t first = int64_t{slice} * kDepth;
      fetch_rows<2, Tile::kRows>(x, first_row, n, first, depth, to);
      fetch_rows<kBytes, Tile::kCols>(pieces.data, tile.first, tile.product.out_dim, first, depth,
                                      to + Tile::kXBytes);
    }
    async_commit();  // an empty group keeps the count
  };
  float acc[Tile::kRowFrags][Tile::kColFrags][4] = {};
  for (int slice = 0; slice < Tile::kStages - 1; ++slice) fetch(slice);
  for (int slice = 0; slice < slices; ++slice) {
    async_wait<Tile::kStages - 2>();
    // Now all threads see the slice, and all have finished the slice that the next fetch
    // overwrites.
    block_sync();
    fetch(slice + Tile::kStages - 1);
    multiply<T, Tile>(slice_at(slice), pieces, tile.first, int64_t{slice} * kDepth, acc);
  }
  async_wait<0>();
  store_tile<T, Tile>(tile.product, n, first_row, tile.first, acc);
}

}  // namespace fp8kv::FP8KV_GPU
