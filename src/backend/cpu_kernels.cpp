#include "backend/cpu_kernels.h"

namespace fp8kv {

const CpuKernels& cpu_kernels(CpuIsa isa) {
#if defined(__x86_64__)
  switch (isa) {
    case CpuIsa::avx2:
      return kAvx2Kernels;
    case CpuIsa::avx512:
      return kAvx512Kernels;
    case CpuIsa::avx512_bf16:
      return kAvx512Bf16Kernels;
    case CpuIsa::portable:
      break;
  }
#else
  (void)isa;
#endif
  return kPortableKernels;
}

}  // namespace fp8kv
