// Rows of a cache as floats on the CPU. Formats of elements go by vectors, the others by
// core/cache/kv_rows.h. Internal to backend/cpu.
#pragma once

#include <cstddef>

#include "backend/cpu/isa/common/cpu_kernels.h"
#include "core/cache/kv_format.h"

namespace fp8kv {

// Reads a row's values into to [row.dim], without the stored scale, and still rotated if the format
// rotates.
void read_kv_row(const CpuKernels& kernels, const KvRow& row, const std::byte* from, float* to);

// Stores x [row.dim], which the caller has rotated if the format rotates.
void write_kv_row(const CpuKernels& kernels, const KvRow& row, const float* x, float stored,
                  std::byte* to);

}  // namespace fp8kv
