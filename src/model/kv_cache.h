// The paged KV cache: pools of pages for every layer, and which sequence holds which page.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "core/cache_type.h"
#include "core/config.h"
#include "core/scales.h"
#include "model/page_pool.h"

namespace fp8kv {

// Tokens in a page.
inline constexpr int32_t kPageSize = 64;
// Pages that a cache may have at most: a token's slot is 32 bits wide.
inline constexpr int64_t kMostPages = std::numeric_limits<int32_t>::max() / kPageSize;

// What memory a cache has.
enum class CacheMemory {
  none,     // no layer stores anything: the cache only says which pages a sequence has
  in_turn,  // one that all layers use in turn, but for those whose cache others read later
  all       // for every layer
};

struct KvCacheOptions {
  ModelCache dtype = CacheType();
  int64_t n_pages = 0;
  int64_t padding_pages = 0;  // beside them, for rows that are there only to fill a step
  CacheMemory memory = CacheMemory::all;
};

class KvCache {
 public:
  // `scales` are in the format that scales_for names; null means 1 everywhere.
  // A scale per tensor serves every head. REQUIRES can_hold of the model.
  KvCache(Backend& backend, const ModelConfig& config, const KvCacheOptions& options,
          const KvScales* scales);

  // The cache that layer `index` of the model reads, its own or another's; without memory where it
  // has none.
  PagedKv layer(int64_t index) const;
  const ModelCache& dtype() const { return options_.dtype; }
  uint64_t bytes() const { return bytes_; }
  int64_t pages() const { return options_.n_pages; }
  // Pages that sequences may take, whether or not they still hold what another may share.
  int64_t free_pages() const { return pool_.available(); }
  int32_t padding_page() const { return static_cast<int32_t>(options_.n_pages); }
  static int64_t pages_for(int64_t tokens) { return (tokens + kPageSize - 1) / kPageSize; }

  // A sequence's pages in order of position, and the tokens that are in them.
  struct Sequence {
    std::vector<int32_t> pages;
    int64_t tokens = 0;
  };

  // Takes pages for all of a sequence's life of `max_tokens` tokens, so that it never has to stop
  // half-way; with `share`, those of another that begin as `prompt` does are used, and `sequence`
  // begins with their tokens. At least one token of the prompt is left to be computed. False (and
  // no change) while there are too few pages.
  // A page may be shared before its tokens have been computed: REQUIRES that prompts are computed
  // in the order in which they were admitted, and all of a prompt.
  bool admit(Sequence& sequence, std::span<const int32_t> prompt, int64_t max_tokens, bool share);

  // Makes room for `tokens` more at the end of the sequence; false (and no change) when there are
  // not enough free pages.
  bool extend(Sequence& sequence, int64_t tokens);
  // Slot of a position that was made room for.
  static int32_t slot(const Sequence& sequence, int64_t position);
  void release(Sequence& sequence);

 private:
  // Of a layer, or of all that use one memory in turn.
  struct Pools {
    // [n_pages, n_kv_heads, kPageSize] rows of the layer with most; no V where it is in K.
    Tensor k, v;
  };
  struct Scales {
    Tensor k, v;  // [n_kv_heads] f32
  };

  void add_layer(int64_t index, bool own_memory, const KvScales* scales);
  Pools new_pools(uint64_t k_bytes, uint64_t v_bytes);

  Backend& backend_;
  std::vector<LayerDescription> layers_;  // of the model
  KvCacheOptions options_;
  Pools in_turn_;
  std::map<int64_t, Pools> pools_;     // by layer; those that do not use the one in turn
  std::map<int64_t, Scales> scales_;   // by layer; none without stored scales
  std::map<int64_t, float> q_scales_;  // by layer; of scales that have some
  PagePool pool_;
  uint64_t bytes_ = 0;
};

}  // namespace fp8kv
