// Launches of matrix products. Callers have checked the arguments; pointers are the
// device's, and sizes are those of backend/backend.h.
#pragma once

#include "core/model/block.h"
#include "kernels/launch_rows.h"
#include "kernels/launch_types.h"

namespace fp8kv::FP8KV_GPU {

inline constexpr int kMaxProducts = 3;

// out = x weight^T + bias, or out += with `accumulate`.
struct Product {
  const void* weight = nullptr;  // [out_dim, in_dim], x's type
  const void* bias = nullptr;    // [out_dim], x's type; may be null
  void* out = nullptr;           // [n, out_dim], x's type or f32
  int64_t out_dim = 0;
  bool accumulate = false;
  bool out_f32 = false;
};

struct Products {
  const void* x = nullptr;  // [n, in_dim]
  int64_t n = 0;
  int64_t in_dim = 0;
  Product each[kMaxProducts];
  int count = 0;
};

class GemmLibrary;

// `computed_as`: the number of rows that the kernel is chosen for; 0: the actual number.
void linear(Stream stream, GemmLibrary& library, DType dtype, const Products& products,
            int64_t computed_as);

// For each head, some of its elements times a matrix of its own. All of one type.
struct HeadProducts {
  const void* x = nullptr;        // [n, n_heads, x_width]; uses in_dim from x_first on
  const void* weights = nullptr;  // [n_heads, out_dim, in_dim]
  void* out = nullptr;            // [n, n_heads, out_width]; sets out_dim from out_first on
  int64_t n = 0;
  int64_t n_heads = 0;
  int64_t in_dim = 0;
  int64_t out_dim = 0;
  int64_t x_width = 0;
  int64_t x_first = 0;
  int64_t out_width = 0;
  int64_t out_first = 0;
};

void linear_heads(Stream stream, DType dtype, const HeadProducts& args);

// Copies `columns` elements of each row. Both of one type.
struct HeadCopy {
  const void* from = nullptr;
  void* to = nullptr;
  int64_t from_width = 0;
  int64_t to_width = 0;
  int64_t rows = 0;
  int64_t columns = 0;
};

void copy_columns(Stream stream, DType dtype, const HeadCopy& args);

// The f32 scale of the code at (r, c): scales[r / block_rows * groups + c / block_columns].
struct CodeScales {
  const float* scales = nullptr;
  int32_t block_rows = 1;
  int32_t block_columns = 1;
  int32_t groups = 1;
};

// Products with FP8 codes as weights, all of one format.
struct CodedProducts {
  Products products;
  CodeScales scales[kMaxProducts];
  Fp8Format format = Fp8Format::e4m3fn;
};

// Whether linear_codes takes products of x in this type with the matrix.
bool takes_codes(const QuantisedMatrix& matrix, DType dtype);

// linear for codes. It gives the bits of `linear` with decoded weights, if no library multiplies
// these.
void linear_codes(Stream stream, DType dtype, const CodedProducts& coded, int64_t computed_as);

// Decodes scales to `to` [row blocks, groups] f32; see scale_value.
void decode_scales(Stream stream, const QuantisedMatrix& matrix, float* to);

// Products of rows that the kernel normalises itself. `products.x` is where `linear` would read the
// normalised rows; it is not touched.
struct NormedProducts {
  const void* x = nullptr;  // [n, in_dim]
  NormWeights norm;         // for rmsnorm
  Products products;
};

// Whether project_append and hidden take these. Both give the same bits as rmsnorm, linear and the
// op that follows, so either way may be chosen at any time.
bool takes_fused(DType dtype, const NormedProducts& normed, int64_t computed_as);

// Whether `hidden` has a kernel for the activation, and is faster for so many columns than separate
// launches.
bool takes_hidden(Activation activation, int64_t columns, int multiprocessors);

// gate = activation(gate) * up, for gate and up as products of the normalised rows. up's memory is
// not touched. REQUIRES takes_fused and takes_hidden.
void hidden(Stream stream, DType dtype, Activation activation, const NormedProducts& normed,
            int multiprocessors);

}  // namespace fp8kv::FP8KV_GPU
