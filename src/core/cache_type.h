// What a KV cache holds: elements of one type, or latents in blocks that make their own scales.
#pragma once

#include <optional>

#include "core/dtype.h"

namespace fp8kv {

struct CacheType {
  DType dtype = DType::f16;    // of the elements; of latents in blocks, their codes
  bool latent_blocks = false;  // fp8_ds_mla, see core/latent_blocks.h

  CacheType() = default;
  CacheType(DType elements) : dtype(elements) {}  // a cache of elements
  CacheType(DType codes, bool in_blocks) : dtype(codes), latent_blocks(in_blocks) {}

  bool operator==(const CacheType&) const = default;
};

inline CacheType fp8_ds_mla() {
  return {DType::f8_e4m3, true};
}

// The format of elements that share a scale with all others of their head; nullopt for other types.
std::optional<Fp8Format> fp8_format(const CacheType& type);
// Whether scales are made for it.
bool is_e4m3(const CacheType& type);
// f32, f16 and bf16.
bool is_compute_dtype(const CacheType& type);

}  // namespace fp8kv
