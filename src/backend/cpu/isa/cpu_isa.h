// The instruction sets that the CPU backend's kernels are written for: one table, a row each.
#pragma once

#include <span>
#include <string_view>

namespace fp8kv {

struct CpuKernels;

// In rising order, for each architecture. The first ones are AMX's matrix units in plain C++, with
// the same bits: for tests on machines without AMX.
enum class CpuIsa {
  plain_amx,
  plain_amx_fp16,
  portable,
  neon,
  neon_bf16,
  avx2,
  avx512,
  avx512_bf16,
  amx,
  amx_fp16,
};

struct CpuIsaRow {
  CpuIsa isa;
  std::string_view id;             // for FP8KV_CPU: "avx512-bf16"
  std::string_view name;           // "AVX-512 BF16"
  std::string_view needs;          // as in /proc/cpuinfo: "avx2, fma and f16c"
  bool (*is_here)();               // whether this processor has all of that
  const CpuKernels& (*kernels)();  // REQUIRES is_here(); null: for another architecture
};

// One row for each CpuIsa, in the same order.
std::span<const CpuIsaRow> cpu_isas();

const CpuIsaRow& cpu_isa_row(CpuIsa isa);

// Whether the program has kernels for it on this architecture, and not for tests alone.
inline bool is_for_users(const CpuIsaRow& row) {
  return row.kernels != nullptr && row.isa > CpuIsa::plain_amx_fp16;
}

// Whether the set is slower here than the one before it: AVX-512 BF16 is on Intel's processors. The
// maker decides, and no clock, because the set decides the bits of products.
bool is_slow_here(const CpuIsaRow& row);

// The best set this processor has that is not slow here.
CpuIsa best_cpu_isa();
// Returns the set whose id the environment variable FP8KV_CPU has, else the best. Throws a usage
// error if no set has that id, or if this processor does not have the set.
CpuIsa chosen_cpu_isa();

bool has_cpu_isa(CpuIsa isa);
std::string_view cpu_isa_name(CpuIsa isa);
// REQUIRES has_cpu_isa(isa).
const CpuKernels& cpu_kernels(CpuIsa isa);

}  // namespace fp8kv
