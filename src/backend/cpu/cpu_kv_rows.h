// Rows of a cache as floats on the CPU: formats of elements by vectors, the others as
// core/kv_rows.h has them. Internal to backend/cpu.
#pragma once

#include <cstddef>

#include "backend/cpu/isa/cpu_kernels.h"
#include "core/kv_format.h"

namespace fp8kv {

// to [row.dim] = the row's values without the stored scale, rotated where the format is.
void read_kv_row(const CpuKernels& kernels, const KvRow& row, const std::byte* from, float* to);

// Stores x [row.dim], rotated already where the format is.
void write_kv_row(const CpuKernels& kernels, const KvRow& row, const float* x, float stored,
                  std::byte* to);

}  // namespace fp8kv
