// Products on tensor cores: tiles of x and of the weights come through a ring of slices in shared
// memory while earlier ones are multiplied.
#include "kernels/blocks/products.cuh"

namespace fp8kv::FP8KV_GPU {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarp;
// Elements of a row in a slice. Rows of 64 bytes need no swizzle: the eight lanes that shared
// memory serves at a time read two whole rows, which are all banks once.
constexpr int kDepth = 32;
constexpr int kChunks = kDepth * 2 / 16;  // 16-byte pieces of a row

// A block's tile of the result, each warp's part of it, and how many slices are on their way or
// being multiplied.
template <int kTileRows, int kTileCols, int kWarpRows, int kWarpCols, int kRingSlices>
struct Tiling {
  static constexpr int kStages = kRingSlices;
  static constexpr int kRows = kTileRows;
  static constexpr int kCols = kTileCols;
  static constexpr int kRowFrags = kWarpRows / 16;
  static constexpr int kColFrags = kWarpCols / Mma::kCols;
  static constexpr int kWarpsAcross = kTileCols / kWarpCols;
  static constexpr int kSliceElements = (kTileRows + kTileCols) * kDepth;
  static constexpr size_t kSharedBytes = size_t{kStages} * kSliceElements * 2;
  static_assert(kSharedBytes <= kMostSharedBytes);
  static_assert(kTileRows / kWarpRows * kWarpsAcross == kWarps);

  static __device__ int first_row() { return warp_index() / kWarpsAcross * kWarpRows; }
  static __device__ int first_col() { return warp_index() % kWarpsAcross * kWarpCols; }
};

// Prefill, and decode of a few sequences. The latter is bound by reading the weights, and a matrix
// of 4096 columns makes no more than 64 blocks: to cover a latency of 700 ns at 3 TB/s, 2 MB have
// to be on their way, 32 KB in each. Where copies are not asynchronous a deep ring gains nothing.
using Large = Tiling<128, 128, 64, 64, 4>;
using Small = Tiling<32, 64, 32, 16, kHasAsync ? 8 : 4>;

// Row tiles that are worked on together, so that their part of x stays in L2 while the weights
// stream by.
constexpr int64_t kRowGroup = 8;

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

// Asks for kRows rows of `from` [rows, depth], kDepth elements from `first`; zero outside.
template <typename T, int kRows>
__device__ inline void fetch_rows(const T* from, int64_t first_row, int64_t rows, int64_t first,
                                  int64_t depth, T* slice) {
#pragma unroll
  for (int i = 0; i < (kRows * kChunks + kThreads - 1) / kThreads; ++i) {
    const int piece = i * kThreads + thread_index();
    if (kRows * kChunks % kThreads != 0 && piece >= kRows * kChunks) break;
    const int64_t row = first_row + piece / kChunks;
    const int64_t at = first + piece % kChunks * 8;
    const bool valid = row < rows && at < depth;
    copy_async<16>(slice + piece * 8, valid ? from + row * depth + at : from, valid);
  }
}

struct alignas(16) Chunk {
  uint32_t words[4];
};

// acc += the product of one slice. A lane reads 16 bytes of each of its rows: its depths of two
// matrix instructions.
template <typename T, typename Tile>
__device__ inline void multiply(const T* xs, const T* weights, float (*acc)[Tile::kColFrags][4]) {
  const int row = Mma::row(lane_index()), group = Mma::group(lane_index());
  Chunk b[Tile::kColFrags];
#pragma unroll
  for (int j = 0; j < Tile::kColFrags; ++j) {
    const int at = Tile::first_col() + j * Mma::kCols + row;
    b[j] = *reinterpret_cast<const Chunk*>(weights + at * kDepth + group * 8);
  }
#pragma unroll
  for (int i = 0; i < Tile::kRowFrags; ++i) {
    Chunk a[Mma::kRowsPerLane];
#pragma unroll
    for (int r = 0; r < Mma::kRowsPerLane; ++r) {
      const int at = Tile::first_row() + i * 16 + r * 8 + row;
      a[r] = *reinterpret_cast<const Chunk*>(xs + at * kDepth + group * 8);
    }
#pragma unroll
    for (int step = 0; step < 2; ++step) {
      uint32_t pairs[2 * Mma::kRowsPerLane];
#pragma unroll
      for (int r = 0; r < Mma::kRowsPerLane; ++r) {
        pairs[2 * r] = a[r].words[2 * step];
        pairs[2 * r + 1] = a[r].words[2 * step + 1];
      }
#pragma unroll
      for (int j = 0; j < Tile::kColFrags; ++j) {
        Mma::run<T>(acc[i][j], pairs, b[j].words + 2 * step);
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

// One block per tile of the result. REQUIRES rows of 16-byte vectors.
template <typename T, typename Tile>
__global__ void __launch_bounds__(kThreads)
    linear_tensor_kernel(Products products, int64_t row_tiles, int64_t col_tiles) {
  after_previous();
  Shared shared;
  T* ring = shared.take<T>(Tile::kStages * Tile::kSliceElements);
  const TilePlace place = tile_place(block_index().x, row_tiles, col_tiles);
  const ColumnTile tile = column_tile(products, place.col, Tile::kCols);
  const int64_t first_row = place.row * Tile::kRows;
  // hipcc would copy `products`, which is indexed at run time, to scratch if `fetch` captured it.
  const T* x = static_cast<const T*>(products.x);
  const int64_t n = products.n, depth = products.in_dim;
  const auto slices = static_cast<int>((depth + kDepth - 1) / kDepth);
  const auto slice_at = [&](int slice) {
    return ring + slice % Tile::kStages * Tile::kSliceElements;
  };
  const auto fetch = [&](int slice) {
    if (slice < slices) {
      T* to = slice_at(slice);
      const int64_t first = int64_t{slice} * kDepth;
      fetch_rows<T, Tile::kRows>(x, first_row, n, first, depth, to);
      fetch_rows<T, Tile::kCols>(static_cast<const T*>(tile.product.weight), tile.first,
                                 tile.product.out_dim, first, depth, to + Tile::kRows * kDepth);
    }
    async_commit();  // an empty group keeps the count
  };
  float acc[Tile::kRowFrags][Tile::kColFrags][4] = {};
  for (int slice = 0; slice < Tile::kStages - 1; ++slice) fetch(slice);
  for (int slice = 0; slice < slices; ++slice) {
    async_wait<Tile::kStages - 2>();
    // The slice is there for all; and all are done with the one whose place the next one takes.
    block_sync();
    fetch(slice + Tile::kStages - 1);
    const T* xs = slice_at(slice);
    multiply<T, Tile>(xs, xs + Tile::kRows * kDepth, acc);
  }
  async_wait<0>();
  store_tile<T, Tile>(tile.product, n, first_row, tile.first, acc);
}

template <typename T, typename Tile>
void run(Stream stream, const Products& products) {
  const int64_t row_tiles = (products.n + Tile::kRows - 1) / Tile::kRows;
  const int64_t col_tiles = column_tiles(products, Tile::kCols);
  launch("linear", linear_tensor_kernel<T, Tile>, {static_cast<unsigned>(row_tiles * col_tiles)},
         kThreads, Tile::kSharedBytes, stream, products, row_tiles, col_tiles);
}

}  // namespace

template <typename T>
void linear_tensor(Stream stream, const Products& products) {
  products.n <= Small::kRows ? run<T, Small>(stream, products) : run<T, Large>(stream, products);
}

template void linear_tensor<F16>(Stream, const Products&);
template void linear_tensor<Bf16>(Stream, const Products&);

}  // namespace fp8kv::FP8KV_GPU
