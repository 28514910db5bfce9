// The element types of activations, weights and caches, one value at a time.
#pragma once

#include <optional>

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

// Worth value() times the scale of its head.
template <Fp8Format F>
struct Fp8 {
  static constexpr bool kIsBf16 = false;
  static constexpr Fp8Format kFormat = F;
  uint8_t code;

  __device__ float value() const { return fp8_decode<F>(code); }
  static __device__ Fp8 of(float x) { return {static_cast<uint8_t>(fp8_codes<F>(x, 0.0f))}; }
};

template <typename T>
inline constexpr bool kIsFp8 = sizeof(T) == 1;

// Two values as they lie in memory, the first in the low half.
template <typename T>
__device__ inline uint32_t packed_pair(float first, float second) {
  if constexpr (T::kIsBf16) {
    return bf16_codes(first, second);
  } else {
    return static_cast<uint32_t>(T::of(first).code) | static_cast<uint32_t>(T::of(second).code)
                                                          << 16;
  }
}

// Calls work(T{}) for the element type `dtype` names.
template <typename Work>
void with_compute_type(DType dtype, Work&& work) {
  switch (dtype) {
    case DType::f16:
      return work(F16{});
    case DType::bf16:
      return work(Bf16{});
    default:
      return work(F32{});
  }
}

template <typename Work>
void with_cache_type(DType dtype, Work&& work) {
  if (const std::optional<Fp8Format> format = fp8_format(dtype)) {
    switch (*format) {
      case Fp8Format::e4m3fn:
        return work(Fp8<Fp8Format::e4m3fn>{});
      case Fp8Format::e4m3fnuz:
        return work(Fp8<Fp8Format::e4m3fnuz>{});
      case Fp8Format::e5m2:
        return work(Fp8<Fp8Format::e5m2>{});
      case Fp8Format::e5m2fnuz:
        return work(Fp8<Fp8Format::e5m2fnuz>{});
    }
  }
  with_compute_type(dtype, work);
}

}  // namespace fp8kv::FP8KV_GPU
