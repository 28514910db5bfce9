// Products of heads with their own matrices, and copies of heads' elements.
#include "kernels/blocks/vec.cuh"
#include "kernels/launch_products.h"

namespace fp8kv::FP8KV_GPU {
namespace {

constexpr int kThreads = 256;
constexpr int kTile = 64;          // rows of x and of the matrix in a block
constexpr int kDepth = 16;         // depth of a slice in shared memory
constexpr int kSide = 4;           // rows of x and of the matrix per thread
constexpr int kPitch = kTile + 4;  // off a multiple of the banks
constexpr int64_t kMostBlocks = 65536;

// Loads from [rows, depth], with rows `pitch` elements apart, into slice [kDepth][kPitch],
// transposed; zero outside.
template <typename T>
__device__ inline void load_slice(const T* from, int64_t pitch, int64_t first_row, int64_t rows,
                                  int64_t first, int64_t depth, float* slice) {
  for (int i = thread_index(); i < kTile * kDepth; i += kThreads) {
    const int64_t row = first_row + i / kDepth;
    const int64_t at = first + i % kDepth;
    slice[i % kDepth * kPitch + i / kDepth] =
        row < rows && at < depth ? from[row * pitch + at].value() : 0.0f;
  }
}

// One block per kTile rows (x), and per head and kTile rows of its matrix (y).
template <typename T>
__global__ void linear_heads_kernel(HeadProducts args) {
  after_previous();
  Shared shared;
  float* xs = shared.take<float>(kDepth * kPitch);
  float* weights = shared.take<float>(kDepth * kPitch);
  const int64_t tiles = (args.out_dim + kTile - 1) / kTile;
  const int64_t head = block_index().y / tiles, first_out = block_index().y % tiles * kTile;
  const int64_t first_row = static_cast<int64_t>(block_index().x) * kTile;
  const T* x = static_cast<const T*>(args.x) + head * args.x_width + args.x_first;
  const T* weight = static_cast<const T*>(args.weights) + head * args.out_dim * args.in_dim;
  const int row = thread_index() / 16 * kSide, col = thread_index() % 16 * kSide;
  float sums[kSide][kSide] = {};
  for (int64_t first = 0; first < args.in_dim; first += kDepth) {
    load_slice(x, args.n_heads * args.x_width, first_row, args.n, first, args.in_dim, xs);
    load_slice(weight, args.in_dim, first_out, args.out_dim, first, args.in_dim, weights);
    block_sync();
    for (int d = 0; d < kDepth; ++d) {
      for (int i = 0; i < kSide; ++i) {
        for (int j = 0; j < kSide; ++j) {
          sums[i][j] = fused(xs[d * kPitch + row + i], weights[d * kPitch + col + j], sums[i][j]);
        }
      }
    }
    block_sync();
  }
  for (int i = 0; i < kSide; ++i) {
    for (int j = 0; j < kSide; ++j) {
      const int64_t at = first_row + row + i, out = first_out + col + j;
      if (at >= args.n || out >= args.out_dim) continue;
      const int64_t place = (at * args.n_heads + head) * args.out_width + args.out_first + out;
      static_cast<T*>(args.out)[place] = T::of(sums[i][j]);
    }
  }
}

// One element per thread and turn.
template <typename T>
__global__ void copy_columns_kernel(const T* from, int64_t from_width, T* to, int64_t to_width,
                                    int64_t columns, int64_t count) {
  after_previous();
  const int64_t all = int64_t{grid_size().x} * kThreads;
  for (int64_t at = int64_t{block_index().x} * kThreads + thread_index(); at < count; at += all) {
    to[at / columns * to_width + at % columns] = from[at / columns * from_width + at % columns];
  }
}

template <typename T>
void copy(Stream stream, const HeadCopy& args) {
  const int64_t count = args.rows * args.columns, blocks = (count + kThreads - 1) / kThreads;
  launch("copy_columns", copy_columns_kernel<T>,
         {static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks)}, kThreads, 0, stream,
         static_cast<const T*>(args.from), args.from_width, static_cast<T*>(args.to), args.to_width,
         args.columns, count);
}

}  // namespace

void linear_heads(Stream stream, DType dtype, const HeadProducts& args) {
  const int64_t tiles = (args.out_dim + kTile - 1) / kTile;
  with_compute_type(dtype, [&]<typename T>(T) {
    launch("linear_heads", linear_heads_kernel<T>,
           {static_cast<unsigned>((args.n + kTile - 1) / kTile),
            static_cast<unsigned>(args.n_heads * tiles)},
           kThreads, 2 * kDepth * kPitch * sizeof(float), stream, args);
  });
}

void copy_columns(Stream stream, DType dtype, const HeadCopy& args) {
  dtype == DType::f32 ? copy<uint32_t>(stream, args) : copy<uint16_t>(stream, args);
}

}  // namespace fp8kv::FP8KV_GPU
