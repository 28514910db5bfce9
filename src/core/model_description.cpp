#include "core/model_description.h"

#include <algorithm>
#include <array>

#include "core/latent_blocks.h"

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

bool has_latent_blocks(const ModelDescription& model) {
  bool has_cache = false;
  for (int64_t i = 0; i < model.n_layers(); ++i) {
    if (!model.writes_cache(i)) continue;
    const LayerDescription& layer = model.layer(i);
    if (!layer.v_in_k || layer.v_head_dim % kLatentBlock != 0) return false;
    has_cache = true;
  }
  return has_cache;
}

uint64_t kv_bytes_per_token(const LayerDescription& layer, int64_t n_kv_heads,
                            const CacheType& type) {
  const auto index_bytes = static_cast<uint64_t>(layer.index_bytes);
  if (type.latent_blocks) {
    FP8KV_ASSERT(layer.v_in_k && layer.v_head_dim % kLatentBlock == 0);
    const LatentBlocks blocks{static_cast<int32_t>(layer.v_head_dim),
                              static_cast<int32_t>(layer.own_k_dim())};
    return static_cast<uint64_t>(blocks.bytes()) + index_bytes;
  }
  const int64_t of_v = layer.v_in_k ? 0 : layer.v_head_dim;
  const uint64_t per_head = product(layer.k_head_dim + of_v, dtype_bytes(type.dtype));
  return product(n_kv_heads, per_head) + index_bytes;
}

uint64_t kv_bytes_per_token(const ModelDescription& model, const CacheType& type) {
  FP8KV_ASSERT(!model.unclear);
  uint64_t bytes = 0;
  for (int64_t i = 0; i < model.n_layers(); ++i) {
    if (!model.writes_cache(i)) continue;
    const LayerDescription& layer = model.layer(i);
    const uint64_t of_layer = kv_bytes_per_token(layer, layer.n_kv_heads, type);
    if (bytes > kMost - of_layer) {
      fail("a token of more than 2^63 bytes is larger than can be counted");
    }
    bytes += of_layer;
  }
  return bytes;
}

}  // namespace fp8kv
