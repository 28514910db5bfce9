#include "backend/cpu/isa/cpu_isa.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#if defined(__aarch64__)
#include <sys/auxv.h>
#endif
#include <vector>

#include "backend/cpu/isa/common/cpu_kernels.h"
#include "base/error.h"
#include "base/text.h"

namespace fp8kv {
namespace {

const CpuKernels& portable_kernels() {
  return kPortableKernels;
}

CpuKernels with_unit(const CpuKernels& others, const MatrixUnit& unit) {
  CpuKernels kernels = others;
  kernels.matrix_unit = &unit;
  return kernels;
}

const CpuKernels& plain_amx_kernels() {
  static const CpuKernels kKernels = with_unit(kPortableKernels, kPlainMatrixUnit);
  return kKernels;
}

const CpuKernels& plain_amx_fp16_kernels() {
  static const CpuKernels kKernels = with_unit(kPortableKernels, kPlainF16MatrixUnit);
  return kKernels;
}

[[maybe_unused]] bool is_not_here() {
  return false;
}

#if defined(__x86_64__)

// __builtin_cpu_supports also checks that the operating system saves the registers.
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c");
}

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

bool has_avx512_bf16() {
  return has_avx512() && __builtin_cpu_supports("avx512bf16");
}

void take_vbmi(CpuKernels& kernels) {
  take_vbmi_panels(kernels);
  take_vbmi_row_tiles(kernels);
  take_vbmi_key_tiles(kernels);
}

const CpuKernels& avx2_kernels() {
  return kAvx2Kernels;
}

const CpuKernels& avx512_kernels() {
  static const CpuKernels kKernels = [] {
    CpuKernels kernels = kAvx512Kernels;
    if (__builtin_cpu_supports("avx512vbmi")) take_vbmi(kernels);
    return kernels;
  }();
  return kKernels;
}

const CpuKernels& avx512_bf16_kernels() {
  static CodeKernels codes = kAvx512Bf16Codes;
  static const CpuKernels kKernels = [] {
    CpuKernels kernels = kAvx512Bf16Kernels;
    if (__builtin_cpu_supports("avx512vbmi")) {
      take_vbmi(kernels);
      take_vbmi_codes(codes);
      kernels.codes = &codes;
    }
    return kernels;
  }();
  return kKernels;
}

bool has_amx() {
  return has_avx512_bf16() && __builtin_cpu_supports("avx512vbmi") && take_amx();
}

const CpuKernels& amx_kernels() {
  static const CpuKernels kKernels = with_unit(avx512_bf16_kernels(), kAmxMatrixUnit);
  return kKernels;
}

bool has_amx_fp16() {
  return has_amx() && take_amx_fp16();
}

const CpuKernels& amx_fp16_kernels() {
  static const CpuKernels kKernels = with_unit(avx512_bf16_kernels(), kAmxF16MatrixUnit);
  return kKernels;
}

#else

constexpr auto has_avx2 = is_not_here, has_avx512 = is_not_here, has_avx512_bf16 = is_not_here,
               has_amx = is_not_here, has_amx_fp16 = is_not_here;
constexpr const CpuKernels& (*avx2_kernels)() = nullptr;
constexpr const CpuKernels& (*avx512_kernels)() = nullptr;
constexpr const CpuKernels& (*avx512_bf16_kernels)() = nullptr;
constexpr const CpuKernels& (*amx_kernels)() = nullptr;
constexpr const CpuKernels& (*amx_fp16_kernels)() = nullptr;

#endif

#if defined(__aarch64__)

bool has_neon() {
  return true;
}

bool has_neon_bf16() {
  constexpr unsigned long kBf16 = 1ul << 14;  // HWCAP2_BF16, which older headers lack
  return (getauxval(AT_HWCAP2) & kBf16) != 0;
}

const CpuKernels& neon_kernels() {
  return kNeonKernels;
}

const CpuKernels& neon_bf16_kernels() {
  static const CpuKernels kKernels = [] {
    CpuKernels kernels = kNeonKernels;
    take_neon_pairs(kernels);
    return kernels;
  }();
  return kKernels;
}

#else

constexpr auto has_neon = is_not_here, has_neon_bf16 = is_not_here;
constexpr const CpuKernels& (*neon_kernels)() = nullptr;
constexpr const CpuKernels& (*neon_bf16_kernels)() = nullptr;

#endif

constexpr CpuIsaRow kRows[] = {
    {CpuIsa::plain_amx, "plain-amx", "AMX in plain C++", "nothing", [] { return true; },
     plain_amx_kernels},
    {CpuIsa::plain_amx_fp16, "plain-amx-fp16", "AMX FP16 in plain C++", "nothing",
     [] { return true; }, plain_amx_fp16_kernels},
    {CpuIsa::portable, "portable", "portable", "nothing", [] { return true; }, portable_kernels},
    {CpuIsa::neon, "neon", "NEON", "asimd", has_neon, neon_kernels},
    {CpuIsa::neon_bf16, "neon-bf16", "NEON BF16", "asimd and bf16", has_neon_bf16,
     neon_bf16_kernels},
    {CpuIsa::avx2, "avx2", "AVX2", "avx2, fma and f16c", has_avx2, avx2_kernels},
    {CpuIsa::avx512, "avx512", "AVX-512",
     "avx2, fma, f16c, avx512f, avx512bw, avx512dq and avx512vl", has_avx512, avx512_kernels},
    {CpuIsa::avx512_bf16, "avx512-bf16", "AVX-512 BF16",
     "avx2, fma, f16c, avx512f, avx512bw, avx512dq, avx512vl and avx512_bf16", has_avx512_bf16,
     avx512_bf16_kernels},
    {CpuIsa::amx, "amx", "AMX",
     "avx2, fma, f16c, avx512f, avx512bw, avx512dq, avx512vl, avx512_bf16, avx512_vbmi, "
     "amx_tile and amx_bf16",
     has_amx, amx_kernels},
    {CpuIsa::amx_fp16, "amx-fp16", "AMX FP16",
     "avx2, fma, f16c, avx512f, avx512bw, avx512dq, avx512vl, avx512_bf16, avx512_vbmi, "
     "amx_tile, amx_bf16 and amx_fp16",
     has_amx_fp16, amx_fp16_kernels},
};

}  // namespace

std::span<const CpuIsaRow> cpu_isas() {
  return kRows;
}

const CpuIsaRow& cpu_isa_row(CpuIsa isa) {
  return kRows[static_cast<size_t>(isa)];
}

bool is_slow_here(const CpuIsaRow& row) {
#if defined(__x86_64__)
  return row.isa == CpuIsa::avx512_bf16 && __builtin_cpu_is("intel") != 0;
#else
  (void)row;
  return false;
#endif
}

CpuIsa best_cpu_isa() {
  // `portable` is on every processor.
  return std::find_if(std::rbegin(kRows), std::rend(kRows),
                      [](const CpuIsaRow& row) { return row.is_here() && !is_slow_here(row); })
      ->isa;
}

CpuIsa chosen_cpu_isa() {
  const char* given = std::getenv("FP8KV_CPU");
  if (given == nullptr || *given == '\0') return best_cpu_isa();
  std::vector<std::string> ids;
  for (const CpuIsaRow& row : kRows) {
    if (row.id == given && row.is_here()) return row.isa;
    if (row.id == given) {
      throw Error(cat("FP8KV_CPU is ", quote(given), ", but this processor has no ", row.name),
                  cat("it needs ", row.needs), ErrorKind::usage);
    }
    if (row.is_here()) ids.emplace_back(row.id);
  }
  throw Error(cat("FP8KV_CPU is ", quote(given), ", which is no instruction set"),
              cat("this processor has ", join(ids, ", ")), ErrorKind::usage);
}

bool has_cpu_isa(CpuIsa isa) {
  return cpu_isa_row(isa).is_here();
}

std::string_view cpu_isa_name(CpuIsa isa) {
  return cpu_isa_row(isa).name;
}

const CpuKernels& cpu_kernels(CpuIsa isa) {
  return cpu_isa_row(isa).kernels();
}

}  // namespace fp8kv
