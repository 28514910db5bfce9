// The instruction sets that the CPU backend's kernels are written for: one table, a row each.
#pragma once

#include <span>
#include <string_view>

namespace fp8kv {

struct CpuKernels;

// In rising order, for each architecture. The first are AMX's matrix units in plain C++, with their
// bits: for tests on machines without them.
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
  std::string_view needs;          // what /proc/cpuinfo calls it: "avx2, fma and f16c"
  bool (*is_here)();               // whether this processor has all of that
  const CpuKernels& (*kernels)();  // REQUIRES is_here(); null: for another architecture
};

// One row for each CpuIsa, in the same order.
std::span<const CpuIsaRow> cpu_isas();

const CpuIsaRow& cpu_isa_row(CpuIsa isa);

// Whether the program has kernels of this architecture for it, which are not for tests alone.
inline bool is_for_users(const CpuIsaRow& row) {
  return row.kernels != nullptr && row.isa > CpuIsa::plain_amx_fp16;
}

// Whether the set, which this processor has, is slower on it than the one before: AVX-512 BF16
// where products of bf16 take longer than those of F32. Measured once.
bool is_slow_here(const CpuIsaRow& row);

// The best set this processor has that is not slow here.
CpuIsa best_cpu_isa();
// The set that the environment variable FP8KV_CPU names, by its id; else the best.
// Throws a usage error where it names none, or one that this processor lacks.
CpuIsa chosen_cpu_isa();

bool has_cpu_isa(CpuIsa isa);
std::string_view cpu_isa_name(CpuIsa isa);
// REQUIRES has_cpu_isa(isa).
const CpuKernels& cpu_kernels(CpuIsa isa);

}  // namespace fp8kv
