#include "core/cache_type.h"

namespace fp8kv {

std::optional<Fp8Format> fp8_format(const CacheType& type) {
  if (type.latent_blocks) return std::nullopt;
  return fp8_format(type.dtype);
}

bool is_e4m3(const CacheType& type) {
  return !type.latent_blocks && is_e4m3(type.dtype);
}

bool is_compute_dtype(const CacheType& type) {
  return !type.latent_blocks && is_compute_dtype(type.dtype);
}

}  // namespace fp8kv
