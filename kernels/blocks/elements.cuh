// The element types of activations, weights and caches, one value at a time.
#pragma once

#include <optional>

#include "core/cache/kv_rows.h"
#include "core/cache/paged.h"
#include "kernels/device/gpu.h"

namespace fp8kv::FP8KV_GPU {

struct F32 {
  static constexpr bool kIsBf16 = false;
  float x;

  __device__ float value() const { return x; }
  static __device__ F32 of(float x) { return {x}; }
};

struct F16 {
  static constexpr bool kIsBf16 = false;
  uint16_t code;

  __device__ float value() const { return f16_value(code); }
  static __device__ F16 of(float x) { return {f16_code(x)}; }
};

struct Bf16 {
  static constexpr bool kIsBf16 = true;
  uint16_t code;

  __device__ float value() const { return bf16_to_float(code); }
  static __device__ Bf16 of(float x) { return {bf16_code(x)}; }
};

// Codes of two values, the first in the low byte.
template <Fp8Format F>
__device__ inline uint16_t fp8_codes(float first, float second) {
  if constexpr (kHardwareFp8 && (F == Fp8Format::e4m3fn || F == Fp8Format::e5m2)) {
    return encode_fp8<F>(first, second);
  } else {
    return static_cast<uint16_t>(fp8_encode<F>(first) | fp8_encode<F>(second) << 8);
  }
}

// An FP8 code; its number is value() times the scale of its head.
template <Fp8Format F>
struct Fp8 {
  static constexpr bool kIsBf16 = false;
  static constexpr Fp8Format kFormat = F;
  uint8_t code;

  __device__ float value() const { return fp8_decode<F>(code); }
  static __device__ Fp8 of(float x) { return {static_cast<uint8_t>(fp8_codes<F>(x, 0.0f))}; }
};

template <typename T>
inline constexpr bool kIsFp8 = false;
template <Fp8Format F>
inline constexpr bool kIsFp8<Fp8<F>> = true;
template <typename T>
inline constexpr bool kIsFnuz = false;
template <Fp8Format F>
inline constexpr bool kIsFnuz<Fp8<F>> = fp8_spec(F).fnuz;

// The element type of kernels for caches whose rows are not elements of one type.
struct AnyRow {};

// Two values as in memory, the first in the low half.
template <typename T>
__device__ inline uint32_t packed_pair(float first, float second) {
  if constexpr (T::kIsBf16) {
    return bf16_codes(first, second);
  } else {
    return static_cast<uint32_t>(T::of(first).code) | static_cast<uint32_t>(T::of(second).code)
                                                          << 16;
  }
}

// Element i of a compute type that is known when a kernel runs.
__device__ inline float number_at(const void* data, DType dtype, int64_t i) {
  if (dtype == DType::f16) return static_cast<const F16*>(data)[i].value();
  if (dtype == DType::bf16) return static_cast<const Bf16*>(data)[i].value();
  return static_cast<const float*>(data)[i];
}

// Calls work(T{}) for the element type of `dtype`. REQUIRES a compute type.
template <typename Work>
void with_compute_type(DType dtype, Work&& work) {
  FP8KV_ASSERT(is_compute_dtype(dtype));
  if (dtype == DType::f16) return work(F16{});
  if (dtype == DType::bf16) return work(Bf16{});
  work(F32{});
}

// Calls work(T{}) for the element type of a format in elements. Returns false for other formats.
template <typename Work>
bool with_elements(KvFormat format, Work&& work) {
  switch (format) {
    case KvFormat::f32:
      return work(F32{}), true;
    case KvFormat::f16:
      return work(F16{}), true;
    case KvFormat::bf16:
      return work(Bf16{}), true;
    case KvFormat::e4m3fn:
      return work(Fp8<Fp8Format::e4m3fn>{}), true;
    case KvFormat::e4m3fnuz:
      return work(Fp8<Fp8Format::e4m3fnuz>{}), true;
    case KvFormat::e5m2:
      return work(Fp8<Fp8Format::e5m2>{}), true;
    case KvFormat::e5m2fnuz:
      return work(Fp8<Fp8Format::e5m2fnuz>{}), true;
    case KvFormat::ds_mla:
    case KvFormat::nvfp4:
    case KvFormat::nvfp4_4over6:
    case KvFormat::int8_per_token_head:
    case KvFormat::fp8_per_token_head:
    case KvFormat::int4_per_token_head:
    case KvFormat::int4_values:
      break;
  }
  return false;
}

// with_elements for kernels: does nothing for a format that is not in elements.
template <typename Work>
__device__ inline void in_kernel_with_elements(KvFormat format, const Work& work) {
  if (format == KvFormat::f32) return work(F32{});
  if (format == KvFormat::f16) return work(F16{});
  if (format == KvFormat::bf16) return work(Bf16{});
  if (format == KvFormat::e4m3fn) return work(Fp8<Fp8Format::e4m3fn>{});
  if (format == KvFormat::e4m3fnuz) return work(Fp8<Fp8Format::e4m3fnuz>{});
  if (format == KvFormat::e5m2) return work(Fp8<Fp8Format::e5m2>{});
  if (format == KvFormat::e5m2fnuz) return work(Fp8<Fp8Format::e5m2fnuz>{});
}

// Calls work(T{}) for the element type of the cache, or work(AnyRow{}).
template <typename Work>
void with_cache_type(const PagedKv& kv, Work&& work) {
  if (!kv.in_elements() || !with_elements(kv.k_format, work)) work(AnyRow{});
}

}  // namespace fp8kv::FP8KV_GPU
