#include "core/cache/cache_type.h"

namespace fp8kv {

std::optional<Fp8Format> fp8_format(const CacheType& type) {
  return type.k == type.v ? fp8_format(type.k) : std::nullopt;
}

std::optional<KvFormat> scales_for(const CacheType& type) {
  if (is_e4m3(type)) return type.k;
  if (is_nvfp4(type.k) && is_nvfp4(type.v)) return KvFormat::nvfp4;
  return std::nullopt;
}

bool is_e4m3(const CacheType& type) {
  return type.k == type.v && is_e4m3(type.k);
}

bool is_compute_dtype(const CacheType& type) {
  const std::optional<DType> elements = kv_elements(type);
  return elements && is_compute_dtype(*elements);
}

std::optional<DType> kv_elements(const CacheType& type) {
  return type.k == type.v ? kv_elements(type.k) : std::nullopt;
}

}  // namespace fp8kv
