#include "backend/cpu/cpu_kernels.h"

namespace fp8kv {
namespace {

#if defined(__x86_64__)
CpuKernels tuned_bf16_kernels() {
  CpuKernels kernels = kAvx512Bf16Kernels;
  if (__builtin_cpu_supports("avx512vbmi")) take_vbmi_panels(kernels);
  return kernels;
}
#endif

}  // namespace

const CpuKernels& cpu_kernels(CpuIsa isa) {
#if defined(__x86_64__)
  switch (isa) {
    case CpuIsa::avx2:
      return kAvx2Kernels;
    case CpuIsa::avx512:
      return kAvx512Kernels;
    case CpuIsa::avx512_bf16: {
      static const CpuKernels kTuned = tuned_bf16_kernels();
      return kTuned;
    }
    case CpuIsa::portable:
      break;
  }
#else
  (void)isa;
#endif
  return kPortableKernels;
}

}  // namespace fp8kv
