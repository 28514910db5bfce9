// The paged KV cache: pools of pages for every layer, and which sequence holds which page.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "core/cache/cache_type.h"
#include "core/model/config.h"
#include "core/scales/scales.h"
#include "model/cache/page_pool.h"

namespace fp8kv {

// Tokens in a page.
inline constexpr int32_t kPageSize = 64;
// The most pages of a cache: a token's slot is 32 bits wide.
inline constexpr int64_t kMostPages = std::numeric_limits<int32_t>::max() / kPageSize;

// How much memory a cache allocates.
enum class CacheMemory {
  none,     // no layer stores anything: the cache only says which pages a sequence has
  in_turn,  // one pool for all layers in turn, except those whose cache others read later
  all       // for every layer
};

struct KvCacheOptions {
  ModelCache dtype = CacheType();
  int64_t n_pages = 0;
  int64_t padding_pages = 0;  // extra pages for rows that only fill up a step
  CacheMemory memory = CacheMemory::all;
};

// The bytes that a cache keeps for a token: kv_bytes_per_token, but with indexers' keys in the
// model's dtype. REQUIRES can_hold.
uint64_t kept_bytes_per_token(const ModelConfig& config, const ModelCache& cache);

class KvCache {
 public:
  // `scales` are in the format that scales_for names; null means 1 everywhere. One scale per tensor
  // serves every head. REQUIRES can_hold for the model.
  KvCache(Backend& backend, const ModelConfig& config, const KvCacheOptions& options,
          const KvScales* scales);

  // The cache that layer `index` reads, its own or another layer's. Has no memory if the layer
  // reads none.
  PagedKv layer(int64_t index) const;
  // The keys of the layer's sparse indexer, in the model's dtype. Has no memory if the layer
  // chooses no tokens. The first rope_dim elements take the place of K, and the others that of V:
  // see RopeAppend.
  PagedKv index_keys(int64_t index) const;
  const ModelCache& dtype() const { return options_.dtype; }
  uint64_t bytes() const { return bytes_; }
  int64_t pages() const { return options_.n_pages; }
  // Pages that sequences may take, even if their contents could still be shared.
  int64_t free_pages() const { return pool_.available(); }
  int32_t padding_page() const { return static_cast<int32_t>(options_.n_pages); }
  static int64_t pages_for(int64_t tokens) { return (tokens + kPageSize - 1) / kPageSize; }

  // A sequence's pages in order of position, and how many tokens they hold.
  struct Sequence {
    std::vector<int32_t> pages;
    int64_t tokens = 0;
  };

  // Takes pages for all `max_tokens` tokens of a sequence's life, so that it never has to stop
  // half-way. With `share`, it reuses pages of other prompts that begin like `prompt`; `sequence`
  // then starts with their tokens. At least one token of the prompt is left to compute. Returns
  // false, with no change, while there are too few pages.
  // A page may be shared before its tokens are computed. So this REQUIRES that prompts are computed
  // whole, and in the order of their admission.
  bool admit(Sequence& sequence, std::span<const int32_t> prompt, int64_t max_tokens, bool share);

  // Makes room for `tokens` more at the end of the sequence. Returns false, with no change, if
  // there are too few free pages.
  bool extend(Sequence& sequence, int64_t tokens);
  // The slot of a position that has room.
  static int32_t slot(const Sequence& sequence, int64_t position);
  void release(Sequence& sequence);

 private:
  // Memory of one layer, or of all layers that share one pool in turn.
  struct Pools {
    // [n_pages, n_kv_heads, kPageSize] rows, sized for the largest layer; no V if V is a part of K.
    Tensor k, v;
  };
  struct Scales {
    Tensor k, v;  // [n_kv_heads] f32
  };

  void add_index_keys(const ModelConfig& config);
  void add_layer(int64_t index, bool own_memory, const KvScales* scales);
  Pools new_pools(uint64_t k_bytes, uint64_t v_bytes);

  Backend& backend_;
  std::vector<LayerDescription> layers_;  // the model's layers
  KvCacheOptions options_;
  Pools in_turn_;
  std::map<int64_t, Pools> pools_;         // by layer; layers that share in_turn_ have none
  std::map<int64_t, Scales> scales_;       // by layer; none without stored scales
  std::map<int64_t, float> q_scales_;      // by layer; only where the scales have Q
  PagedKv index_row_;                      // without memory; REQUIRES an indexer
  std::map<int64_t, Tensor> index_pools_;  // by layer; with memory in turn, one for all at -1
  PagePool pool_;
  uint64_t bytes_ = 0;
};

}  // namespace fp8kv
