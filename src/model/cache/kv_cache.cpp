#include "model/cache/kv_cache.h"

#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "core/numbers/host_view.h"

namespace fp8kv {
namespace {

// Stands for all layers in a map by layer.
constexpr int64_t kInTurn = -1;

// Returns one scale per KV head, for any granularity of `scales`.
std::vector<float> broadcast(const std::vector<float>& scales, int64_t n_kv_heads) {
  if (scales.size() == 1) return std::vector<float>(static_cast<size_t>(n_kv_heads), scales[0]);
  FP8KV_ASSERT(scales.size() == static_cast<size_t>(n_kv_heads));
  return scales;
}

Tensor to_backend(Backend& backend, const std::vector<float>& values) {
  const Shape shape{static_cast<int64_t>(values.size())};
  Tensor tensor = backend.allocate(DType::f32, shape);
  backend.copy_in(tensor.view(), host_view(values));
  return tensor;
}

// The bytes of a token in the pools of K and of V.
struct PoolBytes {
  uint64_t k = 0;
  uint64_t v = 0;
};

PoolBytes pool_bytes(const LayerDescription& layer, const CacheType& type) {
  const auto heads = static_cast<uint64_t>(layer.n_kv_heads);
  return {heads * k_row_bytes(layer, type.k), heads * v_row_bytes(layer, type.v)};
}

uint64_t index_key_bytes(const ModelConfig& config) {
  return static_cast<uint64_t>(config.indexer->head_dim) * dtype_bytes(config.dtype);
}

}  // namespace

uint64_t kept_bytes_per_token(const ModelConfig& config, const ModelCache& cache) {
  uint64_t bytes = kv_bytes_per_token(config, cache);
  for (int64_t i = 0; i < config.n_layers(); ++i) {
    const LayerDescription& layer = config.layer(i);
    if (layer.one_row) {
      bytes += v_row_bytes(layer, cache.of(i).v) - static_cast<uint64_t>(layer.pool_bytes);
    }
    if (layer.index_bytes == 0) continue;
    bytes = bytes - static_cast<uint64_t>(layer.index_bytes) + index_key_bytes(config);
  }
  return bytes;
}

KvCache::KvCache(Backend& backend, const ModelConfig& config, const KvCacheOptions& options,
                 const KvScales* scales)
    : backend_(backend),
      layers_(config.layers),
      options_(options),
      pool_(options.n_pages, kPageSize) {
  // Slots are 32 bits wide.
  FP8KV_ASSERT(options.n_pages + options.padding_pages <= kMostPages);
  FP8KV_ASSERT(!scales || scales->format == scales_for(options.dtype.type));
  // Q is rotated for K and V alike.
  FP8KV_ASSERT(kv_spec(options.dtype.type.k).rotated == kv_spec(options.dtype.type.v).rotated);
  if (options.memory == CacheMemory::none) return;
  const std::string what =
      cat("KV cache of ", count_of(static_cast<uint64_t>(options.n_pages), "page"), ", ",
          grouped(static_cast<uint64_t>(options.n_pages * kPageSize)), " tokens");
  with_context(what, [&] {
    for (int64_t layer = 0; layer < config.n_layers(); ++layer) {
      if (!config.writes_cache(layer)) continue;
      add_layer(layer, options.memory == CacheMemory::all || config.lends_cache(layer), scales);
    }
    if (options.memory == CacheMemory::in_turn) {
      PoolBytes most;
      for (int64_t layer = 0; layer < config.n_layers(); ++layer) {
        if (!config.writes_cache(layer) || config.lends_cache(layer)) continue;
        const PoolBytes bytes = pool_bytes(config.layer(layer), options_.dtype.of(layer));
        most = {std::max(most.k, bytes.k), std::max(most.v, bytes.v)};
      }
      in_turn_ = new_pools(most.k, most.v);
    }
    if (config.indexer) add_index_keys(config);
  });
}

void KvCache::add_layer(int64_t index, bool own_memory, const KvScales* scales) {
  const LayerDescription& layer = layers_[static_cast<size_t>(index)];
  const CacheType& type = options_.dtype.of(index);
  if (own_memory) {
    const PoolBytes bytes = pool_bytes(layer, type);
    pools_[index] = new_pools(bytes.k, bytes.v);
  }
  if (!kv_spec(type.k).stored_scale && !kv_spec(type.v).stored_scale) return;
  const std::vector<float> ones(static_cast<size_t>(layer.n_kv_heads), 1.0f);
  const LayerScales& own =
      scales ? scales->layers[static_cast<size_t>(index)] : LayerScales{ones, ones};
  if (!own.q.empty()) q_scales_[index] = own.q[0];
  scales_[index] = {to_backend(backend_, broadcast(own.k, layer.n_kv_heads)),
                    to_backend(backend_, broadcast(own.v, layer.n_kv_heads))};
}

void KvCache::add_index_keys(const ModelConfig& config) {
  const IndexerConfig& indexer = *config.indexer;
  index_row_.k_format = index_row_.v_format = kv_format(config.dtype);
  index_row_.page_size = kPageSize;
  index_row_.n_kv_heads = 1;
  index_row_.head_dim = static_cast<int32_t>(indexer.head_dim);
  index_row_.v_in_k = static_cast<int32_t>(indexer.head_dim - indexer.rope_dim);
  const uint64_t bytes = index_key_bytes(config);
  if (options_.memory == CacheMemory::in_turn) {
    index_pools_[kInTurn] = new_pools(bytes, 0).k;
    return;
  }
  for (int64_t layer = 0; layer < config.n_layers(); ++layer) {
    if (config.layer(layer).index_bytes > 0) index_pools_[layer] = new_pools(bytes, 0).k;
  }
}

PagedKv KvCache::index_keys(int64_t index) const {
  if (layers_[static_cast<size_t>(index)].index_bytes == 0) return {};
  auto pool = index_pools_.find(index);
  if (pool == index_pools_.end()) pool = index_pools_.find(kInTurn);
  if (pool == index_pools_.end()) return {};
  PagedKv keys = index_row_;
  std::byte* const data = pool->second.view().data;
  keys.k = data;
  keys.v = data + static_cast<size_t>(keys.head_dim - keys.v_in_k) *
                      dtype_bytes(*kv_elements(keys.k_format));
  return keys;
}

// Allocates pools for so many bytes per token.
KvCache::Pools KvCache::new_pools(uint64_t k_bytes, uint64_t v_bytes) {
  const int64_t tokens = (options_.n_pages + options_.padding_pages) * kPageSize;
  const auto pool = [&](uint64_t bytes) {
    if (bytes == 0) return Tensor();
    Tensor memory = backend_.allocate(DType::u8, Shape{tokens, static_cast<int64_t>(bytes)});
    bytes_ += memory.view().bytes();
    return memory;
  };
  return {pool(k_bytes), pool(v_bytes)};
}

PagedKv KvCache::layer(int64_t index) const {
  const int64_t source = layers_[static_cast<size_t>(index)].cache_of;
  if (source < 0 || options_.memory == CacheMemory::none) return {};
  const LayerDescription& layer = layers_[static_cast<size_t>(source)];
  const CacheType& type = options_.dtype.of(source);
  const auto own = pools_.find(source);
  const Pools& pools = own == pools_.end() ? in_turn_ : own->second;
  PagedKv kv;
  kv.k = pools.k.view().data;
  kv.v = pools.v.view().data;
  if (layer.v_in_k) {
    const std::optional<DType> elements = kv_elements(type);
    const auto before =
        elements ? static_cast<size_t>(layer.own_k_dim()) * dtype_bytes(*elements) : size_t{0};
    kv.v = pools.k.view().data + before;
    kv.v_in_k = static_cast<int32_t>(layer.v_head_dim);
  }
  if (const auto scales = scales_.find(source); scales != scales_.end()) {
    kv.k_scale = scales->second.k.view().as<const float>();
    kv.v_scale = scales->second.v.view().as<const float>();
  }
  if (type == CacheType(KvFormat::e4m3fn)) {
    const auto q = q_scales_.find(source);
    const CacheArithmetic& arithmetic = options_.dtype.arithmetic;
    // vLLM's kernels take 1 if the model has no scale of Q.
    if (arithmetic.fp8_attention) kv.q_scale = q == q_scales_.end() ? 1.0f : q->second;
    kv.toward_zero = arithmetic.toward_zero;
  }
  kv.k_format = type.k;
  kv.v_format = type.v;
  kv.page_size = kPageSize;
  kv.n_kv_heads = static_cast<int32_t>(layer.n_kv_heads);
  kv.head_dim = static_cast<int32_t>(layer.k_head_dim);
  if (!layer.v_in_k) kv.own_v_dim = static_cast<int32_t>(layer.v_head_dim);
  return kv;
}

bool KvCache::extend(Sequence& sequence, int64_t tokens) {
  const int64_t needed = pages_for(sequence.tokens + tokens);
  const int64_t missing = needed - static_cast<int64_t>(sequence.pages.size());
  if (missing > free_pages()) return false;
  for (int64_t i = 0; i < missing; ++i) sequence.pages.push_back(pool_.take());
  sequence.tokens += tokens;
  return true;
}

bool KvCache::admit(Sequence& sequence, std::span<const int32_t> prompt, int64_t max_tokens,
                    bool share) {
  FP8KV_ASSERT(sequence.pages.empty() && !prompt.empty());
  if (share) sequence.pages = pool_.find(prompt.first(prompt.size() - 1));
  for (const int32_t page : sequence.pages) pool_.share(page);
  const auto shared = static_cast<int64_t>(sequence.pages.size());
  const int64_t missing = pages_for(max_tokens) - shared;
  if (missing > free_pages()) {
    release(sequence);
    return false;
  }
  for (int64_t i = 0; i < missing; ++i) sequence.pages.push_back(pool_.take());
  sequence.tokens = shared * kPageSize;
  if (share) pool_.publish(prompt, sequence.pages);
  return true;
}

int32_t KvCache::slot(const Sequence& sequence, int64_t position) {
  const auto page = static_cast<size_t>(position / kPageSize);
  return sequence.pages[page] * kPageSize + static_cast<int32_t>(position % kPageSize);
}

// Releases the last page first: of shared pages, later ones are worth less.
void KvCache::release(Sequence& sequence) {
  while (!sequence.pages.empty()) {
    pool_.release(sequence.pages.back());
    sequence.pages.pop_back();
  }
  sequence = {};
}

}  // namespace fp8kv
