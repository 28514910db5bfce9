// The description of a transformer from its config.json, layer by layer. Every command uses it,
// even for models whose forward pass is not supported. Fields that only the forward pass needs are
// in core/model/config.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/cache/cache_type.h"

namespace fp8kv {

// The most layers that a model may have; more means a broken config. The deepest published models
// have about 1000.
inline constexpr int64_t kMostLayers = 4096;

// How a layer lets tokens see each other.
enum class Mixing {
  full,       // attention to every token before
  window,     // attention to the last `reach` tokens, the token itself included
  chunks,     // attention to the tokens before in the same chunk of `reach`
  recurrent,  // a state of fixed size: linear attention, Mamba, short convolutions
  none,       // no mixing: the layer is feed-forward alone
  unknown     // the config describes it in a form that is not supported
};

enum class FeedForward {
  gated,    // act(gate(x)) * up(x), then down
  plain,    // act(up(x)), then down
  experts,  // a router, and several gated or plain parts
  none,     // the layer has no feed-forward part
  unknown
};

// The enumerator's name for output: "window", "gated".
const char* mixing_name(Mixing mixing);
const char* feed_forward_name(FeedForward part);

struct LayerDescription {
  Mixing mixing = Mixing::full;
  int64_t reach = 0;       // tokens in a window or chunk; else 0
  int64_t n_kv_heads = 0;  // this and the two sizes below are 0 in layers without attention
  int64_t k_head_dim = 0;
  int64_t v_head_dim = 0;
  int64_t cache_of = -1;  // the layer whose cache it reads, possibly its own; -1: none
  FeedForward feed_forward = FeedForward::gated;
  // Bytes of state per sequence, for a layer that keeps one; 0 if unknown.
  uint64_t state_bytes = 0;
  bool state_beside = false;  // it keeps both a state and a cache, side by side: Falcon-H1
  bool v_is_k = false;        // V is the output of K's projection, before K's norm and rotation
  // V is the last v_head_dim elements of K, in the same memory: latent attention (MLA).
  bool v_in_k = false;
  // Bytes per token of a sparse indexer's keys, which lie beside the cache in any format.
  int64_t index_bytes = 0;
  // Tokens that a row sees at most, chosen by a sparse indexer; 0: all in reach.
  int64_t most_seen = 0;
  // K's row, rotated, is V too, and runtimes cache it once. The cache here has a copy in V's place,
  // or pooled rows: DeepSeek V4.
  bool one_row = false;
  // Beside its window, a row sees pooled rows, each made of a whole block of this many tokens. The
  // cache here has them as V of the block's last token. 0: none. REQUIRES one_row.
  int64_t pool = 0;
  bool pool_overlaps = false;  // they are made of the block before, too
  // Bytes per token of pooled rows, which lie beside the cache in any format. A window does not end
  // them, nor the keys of an indexer beside them.
  int64_t pool_bytes = 0;
  bool operator==(const LayerDescription&) const = default;

  // Elements of a K head that are not also part of V.
  int64_t own_k_dim() const { return v_in_k ? k_head_dim - v_head_dim : k_head_dim; }
  // Bytes per token that a window does not end.
  int64_t unended_bytes() const { return one_row ? index_bytes + pool_bytes : 0; }
};

// Why a layer does not fit a format: how the layer is, and what the format needs.
struct CacheMisfit {
  std::string found;     // "layer 3 caches K and V of 2 heads"
  std::string expected;  // "latents in whole blocks of 128"
};

struct ModelDescription {
  std::string architecture;  // "LlamaForCausalLM"; "" where the config names none
  std::string model_type;    // "llama"
  int64_t dim = 0;           // 0 if the config does not say; the same for max_seq_len
  int64_t n_heads = 0;       // query heads of a layer with attention; the most if layers differ
  int64_t max_seq_len = 0;
  // Query heads of each layer if layers differ, else empty.
  std::vector<int64_t> heads_by_layer = {};
  std::vector<LayerDescription> layers;
  // The reason why all layers are Mixing::unknown; absent if they are known. Unknown layers have
  // the heads that could be read from the config, and no cache_of.
  std::optional<Error> unclear;

  int64_t n_layers() const { return static_cast<int64_t>(layers.size()); }
  const LayerDescription& layer(int64_t index) const { return layers[static_cast<size_t>(index)]; }

  int64_t n_heads_of(int64_t index) const {
    return heads_by_layer.empty() ? n_heads : heads_by_layer[static_cast<size_t>(index)];
  }

  // The largest number of KV heads, and the largest K head, over all layers. The two may come from
  // different layers.
  int64_t n_kv_heads() const;
  int64_t head_dim() const;

  // These six REQUIRE the layers to be known.
  bool writes_cache(int64_t index) const { return layer(index).cache_of == index; }
  // Whether the layer has attention, to its own cache or to another layer's.
  bool attends(int64_t index) const {
    return layer(index).mixing != Mixing::recurrent && layer(index).mixing != Mixing::none;
  }
  // Whether the layer keeps a state for each sequence, instead of a cache or beside it.
  bool keeps_state(int64_t index) const {
    return layer(index).mixing == Mixing::recurrent || layer(index).state_beside;
  }
  // The size of the layer's sliding window in tokens; 0: it has none.
  int64_t window(int64_t index) const {
    return layer(index).mixing == Mixing::window ? layer(index).reach : 0;
  }
  // The size of the layer's chunks in tokens, where attention stays within the chunk; 0: it has
  // none.
  int64_t chunk(int64_t index) const {
    return layer(index).mixing == Mixing::chunks ? layer(index).reach : 0;
  }
  int64_t cache_layers() const;  // the number of layers that write their own cache
  // The number of layers up to the last one that writes a cache. Running these fills all caches.
  int64_t layers_to_last_cache() const;
  // Whether another of the first `n_layers` layers reads the cache of this one.
  bool lends_cache(int64_t index, int64_t n_layers) const;
  bool lends_cache(int64_t index) const { return lends_cache(index, n_layers()); }
  // Whether any of the first `n_layers` layers reads the cache of another.
  bool shares_caches(int64_t n_layers) const;
};

// Explains why no cache of this type can hold layer `index`, as the end of a sentence; nullopt if
// one can. REQUIRES a layer that writes a cache.
std::optional<CacheMisfit> cache_misfit(const ModelDescription& model, int64_t index,
                                        const CacheType& type);
// Whether every layer fits its cache, and at least one layer has a cache.
bool can_hold(const ModelDescription& model, const ModelCache& cache);

// Bytes per token in the caches of all layers, while no window is full: K and V of every KV head,
// and the indexers' keys. 0 for a model without a cache. Throws if the sum passes 2^63. REQUIRES
// known layers, and can_hold.
uint64_t kv_bytes_per_token(const ModelDescription& model, const ModelCache& cache);

// The bytes of one row of K or V in a layer. The V row has 0 bytes where V is a part of K.
uint64_t k_row_bytes(const LayerDescription& layer, KvFormat format);
uint64_t v_row_bytes(const LayerDescription& layer, KvFormat format);

// The bytes of one token in one layer, for `n_kv_heads` of its heads.
uint64_t kv_bytes_per_token(const LayerDescription& layer, int64_t n_kv_heads,
                            const CacheType& type);

}  // namespace fp8kv
