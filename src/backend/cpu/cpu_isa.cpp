#include "backend/cpu/cpu_isa.h"

namespace fp8kv {

bool has_cpu_isa(CpuIsa isa) {
#if defined(__x86_64__)
  // __builtin_cpu_supports also asks whether the operating system saves the registers.
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("f16c");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  switch (isa) {
    case CpuIsa::portable:
      return true;
    case CpuIsa::avx2:
      return avx2;
    case CpuIsa::avx512:
      return avx512;
    case CpuIsa::avx512_bf16:
      return avx512 && __builtin_cpu_supports("avx512bf16");
  }
  return false;
#else
  return isa == CpuIsa::portable;
#endif
}

CpuIsa best_cpu_isa() {
  for (const CpuIsa isa : {CpuIsa::avx512_bf16, CpuIsa::avx512, CpuIsa::avx2}) {
    if (has_cpu_isa(isa)) return isa;
  }
  return CpuIsa::portable;
}

std::string_view cpu_isa_name(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::portable:
      return "portable";
    case CpuIsa::avx2:
      return "AVX2";
    case CpuIsa::avx512:
      return "AVX-512";
    case CpuIsa::avx512_bf16:
      return "AVX-512 BF16";
  }
  return "";
}

}  // namespace fp8kv
