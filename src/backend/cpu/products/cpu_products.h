// Building blocks of products on the CPU: preparing rows, strips of tiles, and dot products.
// Callers decide which rows and which weights. Internal to backend/cpu.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "backend/cpu/isa/common/cpu_kernels.h"
#include "backend/cpu/products/cpu_coded_rows.h"
#include "backend/cpu/products/cpu_product_rows.h"
#include "core/numbers/tensor.h"

namespace fp8kv {

// Up to this many rows go by dot products along the weights, more rows by tiles. The second bound
// is for steps whose size is given (Backend::compute_as). At 16 rows both ways are equally fast. At
// 64 rows tiles are faster by up to a third. That is given up so that every batch that decodes is
// computed in one way.
inline constexpr int64_t kMostDotRows = 16;
inline constexpr int64_t kMostNamedDotRows = 64;

// The beginning of part `part` of [0, n), cut into `parts` nearly equal parts.
constexpr int64_t part_begin(int64_t n, int64_t parts, int64_t part) {
  return n * part / parts;
}

// How rows are multiplied with weights.
struct ProductMethod {
  RowForm form;
  bool dots;  // by dot products along the weights; else in strips
  bool operator==(const ProductMethod&) const = default;
};
// The weights of a product and the size of its step, which decide the method.
struct ProductInputs {
  DType weight;
  bool coded;               // the weight has codes, which decode to its type
  int64_t rows;             // rows of the step
  int64_t computed_as = 0;  // replaces `rows` unless it is 0
};
// Whether all elements of a row are there before it is packed. In parts, the largest number of a
// row is unknown.
enum class RowsCome { whole, in_parts };
ProductMethod product_method(const CpuKernels& kernels, const ProductInputs& inputs,
                             RowsCome come = RowsCome::whole);

// Weights whose products are computed together.
int64_t strip_width(const CpuKernels& kernels, RowForm form);

// Packs whole rows as rows [index, index + rows.size()) of `packed`.
void pack_rows(const CpuKernels& kernels, std::span<const float* const> rows,
               const PackedRows& packed, int64_t index);
// Packs some elements of rows; `rows` points to the first of them in each row. REQUIRES elements of
// one k block that begin at a multiple of the strip's width, and a form of RowsCome::in_parts.
void pack_part(const CpuKernels& kernels, std::span<const float* const> rows,
               const ElementRange& elements, const PackedRows& packed, int64_t index);

// Rows of weights for products: numbers, or codes.
struct WeightRows {
  ConstTensorView view;                    // its data is null if there are codes
  const QuantisedMatrix* codes = nullptr;  // same shape as `view`
};

// Floats of working memory for the products of n_rows rows with n_strips strips at once.
int64_t panel_floats(const CpuKernels& kernels, RowForm form, int64_t n_rows, int64_t n_strips);

// The products of the rows with strips of a weight.
void multiply_strips(const TileRows& rows, const WeightRows& weight, const StripRange& strips,
                     const ProductsOut& out, const StripMemory& memory);

// Floats between rows that are prepared for dot products.
int64_t dot_stride(RowForm form, int64_t in_dim);
void prepare_dot_row(const CpuKernels& kernels, RowForm form, const float* from, int64_t in_dim,
                     float* to);

// kDotWeights rows of a weight at a time, for products with all of `rows`.
class DotWeights {
 public:
  DotWeights(const DotRows& rows, const WeightRows& weight, CodeScratch& scratch);

  // Goes to rows [first, first + count). If count < kDotWeights, the last row fills the rest.
  void go_to(int64_t first, int64_t count);
  // See CpuKernels::Dots.
  void multiply(const float* x, int64_t x_stride, int64_t n, float* out);

 private:
  int64_t in_dim() const { return weight_.view.shape[1]; }

  const WeightRows& weight_;
  const CpuKernels::Dots* dots_;
  CodeScratch& scratch_;
  std::optional<CodedRows> coded_;
  bool decoded_ = false;  // rows are decoded once for all rows of x
  std::array<int64_t, kDotWeights> rows_{};
  std::array<const std::byte*, kDotWeights> from_{};
};

// Calls take(row, index, sum) for the products of rows with a range of a weight's rows. If there
// are more rows than one kernel call takes, later calls find the weights in the cache.
template <typename Take>
void multiply_dots(const DotRows& rows, const WeightRows& weight, const WeightRange& range,
                   CodeScratch& scratch, const Take& take) {
  DotWeights weights(rows, weight, scratch);
  for (int64_t first = range.begin; first < range.end; first += kDotWeights) {
    const int64_t count = std::min<int64_t>(kDotWeights, range.end - first);
    weights.go_to(first, count);
    for (int64_t done = 0; done < rows.n; done += kMaxDotRows) {
      const int64_t now = std::min<int64_t>(kMaxDotRows, rows.n - done);
      float sums[kMaxDotRows * kDotWeights];
      weights.multiply(rows.data + done * rows.stride, rows.stride, now, sums);
      for (int64_t r = 0; r < now; ++r) {
        for (int64_t w = 0; w < count; ++w) take(done + r, first + w, sums[r * kDotWeights + w]);
      }
    }
  }
}

}  // namespace fp8kv
