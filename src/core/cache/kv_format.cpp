#include "core/cache/kv_format.h"

#include "base/error.h"

namespace fp8kv {

KvFormat kv_format(DType elements) {
  if (const std::optional<Fp8Format> fp8 = fp8_format(elements)) return kv_format(*fp8);
  if (elements == DType::f16) return KvFormat::f16;
  if (elements == DType::bf16) return KvFormat::bf16;
  FP8KV_ASSERT(elements == DType::f32);
  return KvFormat::f32;
}

KvFormat kv_format(Fp8Format format) {
  switch (format) {
    case Fp8Format::e4m3fn:
      return KvFormat::e4m3fn;
    case Fp8Format::e4m3fnuz:
      return KvFormat::e4m3fnuz;
    case Fp8Format::e5m2:
      return KvFormat::e5m2;
    case Fp8Format::e5m2fnuz:
      break;
  }
  return KvFormat::e5m2fnuz;
}

std::optional<DType> kv_elements(KvFormat format) {
  if (const std::optional<Fp8Format> fp8 = fp8_format(format)) return dtype_of(*fp8);
  switch (format) {
    case KvFormat::f32:
      return DType::f32;
    case KvFormat::f16:
      return DType::f16;
    case KvFormat::bf16:
      return DType::bf16;
    default:
      return std::nullopt;
  }
}

std::optional<Fp8Format> fp8_format(KvFormat format) {
  switch (format) {
    case KvFormat::e4m3fn:
      return Fp8Format::e4m3fn;
    case KvFormat::e4m3fnuz:
      return Fp8Format::e4m3fnuz;
    case KvFormat::e5m2:
      return Fp8Format::e5m2;
    case KvFormat::e5m2fnuz:
      return Fp8Format::e5m2fnuz;
    default:
      return std::nullopt;
  }
}

bool is_e4m3(KvFormat format) {
  return format == KvFormat::e4m3fn || format == KvFormat::e4m3fnuz;
}

bool is_nvfp4(KvFormat format) {
  return format == KvFormat::nvfp4 || format == KvFormat::nvfp4_4over6;
}

Fp8Spec kv_range(KvFormat format) {
  if (const std::optional<Fp8Format> fp8 = fp8_format(format)) return fp8_spec(*fp8);
  FP8KV_ASSERT(is_nvfp4(format));
  return {.mantissa_bits = 1,
          .bias = 0,
          .fnuz = false,
          .max_code = 7,
          .max = 2688.0f,
          .min_normal = 0x1p-6f,
          .min_subnormal = 0x1p-10f};
}

std::string format_name(KvFormat format) {
  if (const std::optional<DType> elements = kv_elements(format)) {
    return std::string(torch_name(*elements));
  }
  switch (format) {
    case KvFormat::f32:
    case KvFormat::f16:
    case KvFormat::bf16:
    case KvFormat::e4m3fn:
    case KvFormat::e4m3fnuz:
    case KvFormat::e5m2:
    case KvFormat::e5m2fnuz:
      break;
    case KvFormat::ds_mla:
      return "fp8_ds_mla";
    case KvFormat::nvfp4:
      return "nvfp4";
    case KvFormat::nvfp4_4over6:
      return "nvfp4_4over6";
    case KvFormat::int8_per_token_head:
      return "int8_per_token_head";
    case KvFormat::fp8_per_token_head:
      return "fp8_per_token_head";
    case KvFormat::int4_per_token_head:
      return "int4_per_token_head";
    case KvFormat::int4_values:
      return "int4_values";
  }
  FP8KV_ASSERT(false);
  return "";
}

}  // namespace fp8kv
