// The formats of K and V in a KV cache.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/cache/kv_format.h"

namespace fp8kv {

struct CacheType {
  KvFormat k = KvFormat::f16;
  KvFormat v = KvFormat::f16;

  CacheType() = default;
  CacheType(KvFormat both) : k(both), v(both) {}
  CacheType(KvFormat keys, KvFormat values) : k(keys), v(values) {}
  // A cache that stores plain elements of one type. REQUIRES a compute or fp8 type.
  CacheType(DType elements) : CacheType(kv_format(elements)) {}

  bool operator==(const CacheType&) const = default;
};

// How a runtime's attention kernels compute with an E4M3 cache, where they lose more precision than
// the format itself.
struct CacheArithmetic {
  bool fp8_attention = false;  // Q and the softmax's weights are rounded to E4M3
  bool toward_zero = false;    // K and V are rounded towards zero
  bool operator==(const CacheArithmetic&) const = default;
};

// The KV cache of a model: one type for all layers, except the layers in `left`.
struct ModelCache {
  CacheType type;
  CacheType left_in;          // the type of the layers in `left`
  std::vector<int64_t> left;  // layer numbers, rising
  CacheArithmetic arithmetic = {};

  template <std::convertible_to<CacheType> T>
  ModelCache(const T& all) : type(all) {}  // NOLINT: a type stands for a cache of it alone

  const CacheType& of(int64_t layer) const {
    return std::binary_search(left.begin(), left.end(), layer) ? left_in : type;
  }
};

// The FP8 format that both K and V are stored in; nullopt for any other cache.
std::optional<Fp8Format> fp8_format(const CacheType& type);
// The format for which a model's scales are made if it uses this cache: E4M3FN, E4M3FNUZ or NVFP4.
// nullopt for caches without stored scales: 16 bit, E5M2, and formats that make their own.
std::optional<KvFormat> scales_for(const CacheType& type);
// Whether K and V are both E4M3FN or E4M3FNUZ.
bool is_e4m3(const CacheType& type);
// Whether K and V are both f32, f16 or bf16.
bool is_compute_dtype(const CacheType& type);
// The one element type of the cache; nullopt for caches that are not plain elements.
std::optional<DType> kv_elements(const CacheType& type);

}  // namespace fp8kv
