// Products by a matrix unit: see MatrixUnit. For cpu_products.cpp alone.
#pragma once

#include <span>

#include "backend/cpu/products/cpu_coded_rows.h"
#include "backend/cpu/products/cpu_product_rows.h"
#include "core/numbers/tensor.h"

namespace fp8kv {

// Does what pack_part does, into a k block of a block of rows.
//   elements: within the k block
void pack_unit_rows(const CpuKernels& kernels, RowForm form, std::span<const float* const> rows,
                    const ElementRange& elements, float* to);

// Floats for the sums of n_rows rows, wherever they begin in a block.
int64_t unit_sums_floats(int64_t n_rows, int64_t n_strips);

// A weight, and how its rows are decoded.
struct StripWeight {
  const ConstTensorView& view;
  CodedRows* coded;  // null: the weight has numbers, not codes
};

// Does what multiply_strips does.
void multiply_unit_strips(const TileRows& rows, const StripWeight& weight, const StripRange& strips,
                          const ProductsOut& out, const StripMemory& memory);

}  // namespace fp8kv
