#include "core/model/model_description.h"

#include <algorithm>
#include <array>

#include "core/numbers/hadamard.h"

namespace fp8kv {
namespace {

constexpr uint64_t kMost = uint64_t{1} << 63;

uint64_t product(int64_t a, uint64_t b) {
  uint64_t result = 0;
  if (__builtin_mul_overflow(static_cast<uint64_t>(a), b, &result) || result > kMost) {
    fail("a cache of ", a, " times ", b, " bytes is larger than can be counted");
  }
  return result;
}

int64_t largest(const std::vector<LayerDescription>& layers, int64_t LayerDescription::*number) {
  int64_t most = 0;
  for (const LayerDescription& layer : layers) most = std::max(most, layer.*number);
  return most;
}

}  // namespace

const char* mixing_name(Mixing mixing) {
  constexpr std::array kNames = {"full", "window", "chunks", "recurrent", "none", "unknown"};
  return kNames[static_cast<size_t>(mixing)];
}

const char* feed_forward_name(FeedForward part) {
  constexpr std::array kNames = {"gated", "plain", "experts", "none", "unknown"};
  return kNames[static_cast<size_t>(part)];
}

int64_t ModelDescription::n_kv_heads() const {
  return largest(layers, &LayerDescription::n_kv_heads);
}

int64_t ModelDescription::head_dim() const {
  return largest(layers, &LayerDescription::k_head_dim);
}

int64_t ModelDescription::cache_layers() const {
  int64_t count = 0;
  for (int64_t i = 0; i < n_layers(); ++i) count += writes_cache(i);
  return count;
}

int64_t ModelDescription::layers_to_last_cache() const {
  int64_t count = n_layers();
  while (count > 0 && !writes_cache(count - 1)) --count;
  return count;
}

bool ModelDescription::lends_cache(int64_t index, int64_t n_layers) const {
  for (int64_t i = 0; i < n_layers; ++i) {
    if (i != index && layer(i).cache_of == index) return true;
  }
  return false;
}

bool ModelDescription::shares_caches(int64_t n_layers) const {
  for (int64_t i = 0; i < n_layers; ++i) {
    if (layer(i).cache_of >= 0 && layer(i).cache_of != i) return true;
  }
  return false;
}

namespace {

std::optional<CacheMisfit> row_misfit(const LayerDescription& layer, int64_t index,
                                      KvFormat format) {
  const KvFormatSpec spec = kv_spec(format);
  const std::string heads = cat("layer ", index, " caches K and V of ",
                                count_of(static_cast<uint64_t>(layer.n_kv_heads), "head"));
  if (spec.holds == KvHolds::latents) {
    const std::string expected = cat("latents in whole blocks of ", spec.multiple);
    if (!layer.v_in_k) return CacheMisfit{heads, expected};
    if (layer.v_head_dim % spec.multiple == 0) return std::nullopt;
    return CacheMisfit{cat("the latent of layer ", index, " has ", layer.v_head_dim, " elements"),
                       expected};
  }
  if (spec.holds == KvHolds::heads && layer.v_in_k) {
    return CacheMisfit{cat("layer ", index, " caches one latent vector"),
                       "K and V of their own in every layer"};
  }
  if (layer.one_row && !spec.in_elements()) {
    return CacheMisfit{cat("layer ", index, " caches one row that is K and V"),
                       "K and V of their own for this format"};
  }
  // vLLM's attention over K and V of different sizes takes caches of elements alone.
  if (spec.holds == KvHolds::heads && layer.k_head_dim != layer.v_head_dim) {
    return CacheMisfit{cat("layer ", index, " caches K of ", layer.k_head_dim,
                           " elements and V of ", layer.v_head_dim),
                       "heads of one size for this format"};
  }
  // vLLM's attention to chosen blocks takes caches of elements and NVFP4.
  if (spec.holds == KvHolds::heads && layer.index_bytes > 0 && format != KvFormat::nvfp4) {
    return CacheMisfit{cat("layer ", index, " attends to blocks that an indexer chooses"),
                       "attention to every token for this format"};
  }
  if (layer.k_head_dim % spec.multiple != 0 || layer.v_head_dim % spec.multiple != 0) {
    return CacheMisfit{cat("heads of layer ", index, " have ", layer.k_head_dim, " elements"),
                       cat("a multiple of ", spec.multiple)};
  }
  if (spec.rotated && hadamard_block(static_cast<int32_t>(layer.k_head_dim)) > kMostHadamardBlock) {
    return CacheMisfit{cat("heads of layer ", index, " have ", layer.k_head_dim, " elements"),
                       cat("blocks of at most ", kMostHadamardBlock, " to be rotated")};
  }
  return std::nullopt;
}

// The bytes of one row. Throws if config.json gives a size that overflows the count.
uint64_t row_bytes(KvFormat format, int64_t dim, int64_t rank) {
  constexpr int64_t kMostDim = int64_t{1} << 24;
  if (kv_spec(format).in_elements()) return product(dim, kv_spec(format).code_bits / 8);
  if (dim > kMostDim) fail("a head of ", dim, " elements is larger than can be counted");
  const KvRow row{format, static_cast<int32_t>(dim), static_cast<int32_t>(rank)};
  return static_cast<uint64_t>(row.bytes());
}

}  // namespace

std::optional<CacheMisfit> cache_misfit(const ModelDescription& model, int64_t index,
                                        const CacheType& type) {
  const LayerDescription& layer = model.layer(index);
  if (const auto misfit = row_misfit(layer, index, type.k)) return misfit;
  return layer.v_in_k && type.k == type.v ? std::nullopt : row_misfit(layer, index, type.v);
}

bool can_hold(const ModelDescription& model, const ModelCache& cache) {
  bool has_cache = false;
  for (int64_t i = 0; i < model.n_layers(); ++i) {
    if (!model.writes_cache(i)) continue;
    if (cache_misfit(model, i, cache.of(i))) return false;
    has_cache = true;
  }
  return has_cache || kv_spec(cache.type.k).in_elements();
}

uint64_t k_row_bytes(const LayerDescription& layer, KvFormat format) {
  return row_bytes(format, layer.k_head_dim, layer.v_in_k ? layer.v_head_dim : 0);
}

uint64_t v_row_bytes(const LayerDescription& layer, KvFormat format) {
  return layer.v_in_k ? 0 : row_bytes(format, layer.v_head_dim, 0);
}

uint64_t kv_bytes_per_token(const LayerDescription& layer, int64_t n_kv_heads,
                            const CacheType& type) {
  const uint64_t v_bytes = layer.one_row ? 0 : v_row_bytes(layer, type.v);
  return product(n_kv_heads, k_row_bytes(layer, type.k) + v_bytes) +
         static_cast<uint64_t>(layer.index_bytes + layer.pool_bytes);
}

uint64_t kv_bytes_per_token(const ModelDescription& model, const ModelCache& cache) {
  FP8KV_ASSERT(!model.unclear);
  uint64_t bytes = 0;
  for (int64_t i = 0; i < model.n_layers(); ++i) {
    if (!model.writes_cache(i)) continue;
    const LayerDescription& layer = model.layer(i);
    const uint64_t of_layer = kv_bytes_per_token(layer, layer.n_kv_heads, cache.of(i));
    if (bytes > kMost - of_layer) {
      fail("a token of more than 2^63 bytes is larger than can be counted");
    }
    bytes += of_layer;
  }
  return bytes;
}

}  // namespace fp8kv
