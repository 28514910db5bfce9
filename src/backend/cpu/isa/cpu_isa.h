// The instruction sets that the CPU backend's kernels are written for: one table, a row each.
#pragma once

#include <span>
#include <string_view>

namespace fp8kv {

struct CpuKernels;

// In rising order, for each architecture.
enum class CpuIsa {
  portable,
  neon,
  neon_bf16,
  avx2,
  avx512,
  avx512_bf16,
};

struct CpuIsaRow {
  CpuIsa isa;
  std::string_view name;           // "AVX-512 BF16"
  std::string_view needs;          // what /proc/cpuinfo calls it: "avx2, fma and f16c"
  bool (*is_here)();               // whether this processor has all of that
  const CpuKernels& (*kernels)();  // REQUIRES is_here(); null: for another architecture
};

// One row for each CpuIsa, in the same order.
std::span<const CpuIsaRow> cpu_isas();

const CpuIsaRow& cpu_isa_row(CpuIsa isa);

// The best set this processor has.
CpuIsa best_cpu_isa();

bool has_cpu_isa(CpuIsa isa);
std::string_view cpu_isa_name(CpuIsa isa);
// REQUIRES has_cpu_isa(isa).
const CpuKernels& cpu_kernels(CpuIsa isa);

}  // namespace fp8kv
