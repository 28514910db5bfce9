// Products by a matrix unit: see MatrixUnit. For cpu_products.cpp alone.
#pragma once

#include <span>

#include "backend/cpu/products/cpu_coded_rows.h"
#include "backend/cpu/products/cpu_product_rows.h"
#include "core/numbers/tensor.h"

namespace fp8kv {

// Does what pack_part does, into a k block of a block of rows.
void pack_unit_rows(const CpuKernels& kernels, std::span<const float* const> rows, int64_t within,
                    int64_t count, float* to, RowForm form);

// Floats for the sums of n_rows rows, wherever they begin in a block.
int64_t unit_sums_floats(int64_t n_rows, int64_t n_strips);

// Does what multiply_strips does, with decoded rows in `scratch`.
// coded: null if the weight has numbers, not codes
void multiply_unit_strips(const TileRows& rows, const ConstTensorView& weight, CodedRows* coded,
                          int64_t first_strip, int64_t n_strips, float* panel,
                          const ProductsOut& out, CodeScratch& scratch);

}  // namespace fp8kv
