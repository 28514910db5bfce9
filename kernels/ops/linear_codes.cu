// Products with weights that stay the checkpoint's FP8 codes. Memory is read at one byte per
// weight, and registers get its number, rounded to the type of x.
#include "kernels/blocks/fragments.cuh"
#include "kernels/blocks/reduce.cuh"
#include "kernels/blocks/tensor_tiles.cuh"
#include "kernels/blocks/vec.cuh"

namespace fp8kv::FP8KV_GPU {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarp;
constexpr int kCount = 8;  // codes that are read at a time

__device__ inline float scale_at(const CodeScales& scales, int32_t r, int32_t c) {
  return scales.scales[r / scales.block_rows * scales.groups + c / scales.block_columns];
}

struct alignas(8) Codes {
  uint32_t words[2];
};

// Decodes kCount codes.
template <typename T, Fp8Format F>
__device__ inline void decode(const Codes& codes, float scale, T (&to)[kCount]) {
  using Pairs = Fp8Pairs<F>;
  const float factor = scale * static_cast<float>(1 << Pairs::exponent());
#pragma unroll
  for (int word = 0; word < 2; ++word) {
    uint32_t pairs[2];
    Pairs::decode(codes.words[word], pairs);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float value = f16_value(static_cast<uint16_t>(pairs[i / 2] >> (16 * (i % 2))));
      // e4m3fn's NaN is the one code that moving bits turns into a number.
      if constexpr (F == Fp8Format::e4m3fn && !Pairs::kHardware) {
        const uint32_t code = codes.words[word] >> (8 * i);
        if ((code & 0x7Fu) == 0x7Fu) value = float_from_bits(0x7FC00000u);
      }
      to[4 * word + i] = T::of(value * factor);
    }
  }
}

template <typename T, Fp8Format F>
struct CodePieces {
  static constexpr int kBytes = 1;
  const unsigned char* data;
  CodeScales scales;
  int32_t rows, columns;

  static __device__ CodePieces of(const CodedProducts& coded, const ColumnTile& tile) {
    return {static_cast<const unsigned char*>(tile.product.weight), coded.scales[tile.index],
            static_cast<int32_t>(tile.product.out_dim),
            static_cast<int32_t>(coded.products.in_dim)};
  }
  __device__ Chunk at(const unsigned char* piece, int64_t row, int64_t depth) const {
    const Codes codes = *reinterpret_cast<const Codes*>(piece);
    const auto r = static_cast<int32_t>(row), c = static_cast<int32_t>(depth);
    const float scale = r < rows && c < columns ? scale_at(scales, r, c) : 0.0f;
    T values[kCount];
    decode<T, F>(codes, scale, values);
    Chunk chunk;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      chunk.words[i] = static_cast<uint32_t>(values[2 * i].code) |
                       static_cast<uint32_t>(values[2 * i + 1].code) << 16;
    }
    return chunk;
  }
};

// One block per tile of the result.
template <typename T, Fp8Format F, typename Tile>
__global__ void __launch_bounds__(kTensorThreads)
    codes_tensor_kernel(CodedProducts coded, int64_t row_tiles, int64_t col_tiles) {
  after_previous();
  tensor_tile<T, Tile, CodePieces<T, F>>(coded, row_tiles, col_tiles);
}

// One warp per column of the result, for all kRows rows, in the order of linear_rows.
template <typename T, Fp8Format F, int kRows>
__global__ void codes_rows_kernel(CodedProducts coded) {
  const Products& products = coded.products;
  const int64_t column = static_cast<int64_t>(block_index().x) * kWarps + warp_index();
  const ColumnTile tile = column_tile(products, column, 1);
  after_previous();
  if (tile.first >= tile.product.out_dim) return;
  const CodeScales scales = coded.scales[tile.index];
  const auto row = static_cast<int32_t>(tile.first);
  const auto* codes =
      static_cast<const uint8_t*>(tile.product.weight) + tile.first * products.in_dim;
  const auto* x = static_cast<const T*>(products.x);
  float sums[kRows] = {};
#pragma unroll 4
  for (int64_t i = kCount * lane_index(); i < products.in_dim; i += kCount * kWarp) {
    const Codes part = *reinterpret_cast<const Codes*>(codes + i);
    const float scale = scale_at(scales, row, static_cast<int32_t>(i));
    T weights[kCount];
    decode<T, F>(part, scale, weights);
    for (int n = 0; n < kRows; ++n) {
      const auto values = load_vec<kCount>(x + n * products.in_dim + i);
      for (int j = 0; j < kCount; ++j)
        sums[n] = fused(values.x[j].value(), weights[j].value(), sums[n]);
    }
  }
  for (int n = 0; n < kRows; ++n) {
    const float sum = warp_sum(sums[n]);
    if (lane_index() == 0) store_result<T>(tile.product, n, tile.first, sum);
  }
}

template <typename T, Fp8Format F>
void run_rows(Stream stream, const CodedProducts& coded) {
  const int64_t columns = column_tiles(coded.products, 1);
  void (*const kernels[])(CodedProducts) = {codes_rows_kernel<T, F, 1>, codes_rows_kernel<T, F, 2>,
                                            codes_rows_kernel<T, F, 3>, codes_rows_kernel<T, F, 4>};
  launch("linear_codes", kernels[coded.products.n - 1],
         {static_cast<unsigned>((columns + kWarps - 1) / kWarps)}, kThreads, 0, stream, coded);
}

template <typename T, Fp8Format F, typename Tile>
void run_tiles(Stream stream, const CodedProducts& coded) {
  const int64_t row_tiles = (coded.products.n + Tile::kRows - 1) / Tile::kRows;
  const int64_t col_tiles = column_tiles(coded.products, Tile::kCols);
  launch("linear_codes", codes_tensor_kernel<T, F, Tile>,
         {static_cast<unsigned>(row_tiles * col_tiles)}, kTensorThreads,
         Tile::template kSharedBytes<1>, stream, coded, row_tiles, col_tiles);
}

template <typename T, Fp8Format F>
void run(Stream stream, const CodedProducts& coded, bool few) {
  if (few) return run_rows<T, F>(stream, coded);
  coded.products.n <= Small::kRows ? run_tiles<T, F, Small>(stream, coded)
                                   : run_tiles<T, F, Large>(stream, coded);
}

}  // namespace

bool takes_codes(const QuantisedMatrix& matrix, DType dtype) {
  const bool is_fp8 =
      matrix.codes_as == WeightCodes::e4m3fn || matrix.codes_as == WeightCodes::e5m2;
  return is_fp8 && (dtype == DType::f16 || dtype == DType::bf16) && matrix.groups == nullptr &&
         matrix.zeros_as == ZeroPoints::none && matrix.row_stride == 1 &&
         matrix.columns % kVector<F16> == 0 &&
         (matrix.n_groups == 1 || matrix.block_columns % kCount == 0) && matrix.rows <= INT32_MAX &&
         matrix.columns <= INT32_MAX;
}

void linear_codes(Stream stream, DType dtype, const CodedProducts& coded, int64_t computed_as) {
  const bool few = is_few(coded.products, computed_as);
  with_compute_type(dtype, [&]<typename T>(T) {
    if constexpr (sizeof(T) == 2) {
      if (coded.format == Fp8Format::e5m2) {
        run<T, Fp8Format::e5m2>(stream, coded, few);
      } else {
        run<T, Fp8Format::e4m3fn>(stream, coded, few);
      }
    }
  });
}

}  // namespace fp8kv::FP8KV_GPU
