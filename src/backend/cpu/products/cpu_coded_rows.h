// Rows of quantised weights for products: decoded a few at a time into memory that stays in the
// cache, or within the product. Both ways give the bits of a decoded matrix.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/cpu/isa/common/cpu_kernels.h"
#include "backend/cpu/memory/cpu_memory.h"
#include "core/model/quantised_matrix.h"

namespace fp8kv {

// Whether CodedRows takes the matrix: codes of 4 or 8 bits along rows, in groups that are not too
// short, decoded to 16-bit numbers.
bool reads_codes(const QuantisedMatrix& matrix, DType compute);

// Memory of one thread.
struct CodeScratch {
  Scratch tables;
  std::vector<int64_t> tabled;  // which rows of scales these are of
  Scratch scales;
  Scratch rows;
};

// Memory for `count` decoded numbers of 16 bits, valid until the next call.
uint16_t* decode_buffer(CodeScratch& scratch, int64_t count);

// A matrix as one job of a product reads it. REQUIRES reads_codes.
class CodedRows {
 public:
  CodedRows(const CpuKernels& kernels, const QuantisedMatrix& matrix, DType compute,
            CodeScratch& scratch);

  // Elements [first, first + count) of a row, numbers of 16 bits. REQUIRES an even `first`.
  void decode(int64_t row, int64_t first, int64_t count, uint16_t* to);

  // Whether kernels multiply the codes themselves. `dots` calls these kernels; it computes what
  // CpuKernels::Dots does, for kDotWeights rows with n <= kMaxDotRows rows of x.
  bool has_dots() const;
  void dots(const int64_t* rows, const float* x, int64_t x_stride, int64_t n, float* out);

 private:
  const uint8_t* codes_of(int64_t row) const;
  void read_scales(int64_t row, float* scales, float* zeros) const;
  const CodeTable* tables_of(int64_t row);
  const CodeKernels::ScaledDots* plain_dots() const;

  const CpuKernels& kernels_;
  const QuantisedMatrix& matrix_;
  CodeScratch& scratch_;
  const bool in_bytes_, bf16_;
  const float* values_;  // the value of each code
  const int64_t run_;    // columns that share a scale
};

}  // namespace fp8kv
