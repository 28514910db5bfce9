// What a config.json says of a transformer, layer by layer: what every command knows of a model,
// whether its forward pass can be computed here or not. What only the forward pass needs is in
// core/config.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/cache_type.h"

namespace fp8kv {

// What tells of more layers is not of a model; the deepest that were published have some 1000.
inline constexpr int64_t kMostLayers = 4096;

// What lets the tokens of a layer see each other.
enum class Mixing {
  full,       // attention to every token before
  window,     // attention to the last `reach` tokens, the token itself included
  chunks,     // attention to the tokens before in the same chunk of `reach`
  recurrent,  // a state of fixed size: linear attention, Mamba, short convolutions
  none,       // nothing: a layer of feed-forward alone
  unknown     // the config says it in a way that is not known here
};

enum class FeedForward {
  gated,    // act(gate(x)) * up(x), then down
  plain,    // act(up(x)), then down
  experts,  // a router, and several of the above
  none,     // the layer has no feed-forward part
  unknown
};

// "window", "gated": the enumerator, for output.
const char* mixing_name(Mixing mixing);
const char* feed_forward_name(FeedForward part);

struct LayerDescription {
  Mixing mixing = Mixing::full;
  int64_t reach = 0;       // tokens, of windows and chunks; else 0
  int64_t n_kv_heads = 0;  // this and the two below are 0 in layers without attention
  int64_t k_head_dim = 0;
  int64_t v_head_dim = 0;
  int64_t cache_of = -1;  // the layer whose cache it reads, itself where it has its own; -1: none
  FeedForward feed_forward = FeedForward::gated;
  // Of a layer that keeps a state, what that takes for each sequence; 0 where it is not known.
  uint64_t state_bytes = 0;
  bool state_beside = false;  // it keeps a state beside its cache, side by side: Falcon-H1
  bool v_is_k = false;        // V is what the projection of K gives, before K's norm and rotation
  // V is the last v_head_dim elements of K, in the same memory: latent attention (MLA).
  bool v_in_k = false;
  // Of a sparse indexer's keys, for each token, which lie beside the cache whatever that holds.
  int64_t index_bytes = 0;
  bool operator==(const LayerDescription&) const = default;

  // Elements of a K head that are not V's as well.
  int64_t own_k_dim() const { return v_in_k ? k_head_dim - v_head_dim : k_head_dim; }
};

// A layer does not fit a format: how it is, and what the format needs.
struct CacheMisfit {
  std::string found;     // "layer 3 caches K and V of 2 heads"
  std::string expected;  // "latents in whole blocks of 128"
};

struct ModelDescription {
  std::string architecture;  // "LlamaForCausalLM"; "" where the config names none
  std::string model_type;    // "llama"
  int64_t dim = 0;           // 0 where the config does not say, as is max_seq_len
  int64_t n_heads = 0;       // of Q, in every layer with attention
  int64_t max_seq_len = 0;
  std::vector<LayerDescription> layers;
  // Why all layers are Mixing::unknown; absent when they are known. Such layers have the heads that
  // the config gives them, as far as it was understood, and no cache_of.
  std::optional<Error> unclear;

  int64_t n_layers() const { return static_cast<int64_t>(layers.size()); }
  const LayerDescription& layer(int64_t index) const { return layers[static_cast<size_t>(index)]; }

  // The largest number of KV heads, and the largest size of a K head, of all layers. They may be of
  // different layers; where layers are alike, every layer has both.
  int64_t n_kv_heads() const;
  int64_t head_dim() const;

  // These six REQUIRE the layers to be known.
  bool writes_cache(int64_t index) const { return layer(index).cache_of == index; }
  // Whether the layer has attention, to a cache of its own or another's.
  bool attends(int64_t index) const {
    return layer(index).mixing != Mixing::recurrent && layer(index).mixing != Mixing::none;
  }
  // Whether the layer keeps a state of each sequence, instead of a cache or beside it.
  bool keeps_state(int64_t index) const {
    return layer(index).mixing == Mixing::recurrent || layer(index).state_beside;
  }
  // Tokens that the sliding window of a layer holds; 0: it has none.
  int64_t window(int64_t index) const {
    return layer(index).mixing == Mixing::window ? layer(index).reach : 0;
  }
  // Tokens of a chunk, of which a token sees those before it in its own; 0: the layer has none.
  int64_t chunk(int64_t index) const {
    return layer(index).mixing == Mixing::chunks ? layer(index).reach : 0;
  }
  int64_t cache_layers() const;  // how many write a cache of their own
  // The layers up to the last that writes a cache: what has to run for all caches to be written.
  int64_t layers_to_last_cache() const;
  // Whether another of the first `n_layers` layers reads the cache of this one.
  bool lends_cache(int64_t index, int64_t n_layers) const;
  bool lends_cache(int64_t index) const { return lends_cache(index, n_layers()); }
  // Whether any of the first `n_layers` layers reads the cache of another.
  bool shares_caches(int64_t n_layers) const;
};

// Why no cache of this type can hold layer `index`, as the end of a sentence; nullopt where one
// can. REQUIRES a layer that writes a cache.
std::optional<CacheMisfit> cache_misfit(const ModelDescription& model, int64_t index,
                                        const CacheType& type);
// Whether every layer of the model can have its cache, and one has any.
bool can_hold(const ModelDescription& model, const ModelCache& cache);

// Bytes that one token takes in the caches of all layers, while no window is full: K and V of every
// KV head, and what indexers keep. 0 for a model without a cache. Throws when that passes 2^63.
// REQUIRES known layers, and can_hold.
uint64_t kv_bytes_per_token(const ModelDescription& model, const ModelCache& cache);

// The bytes of one row of K or V of a layer. V has none where it is a part of K.
uint64_t k_row_bytes(const LayerDescription& layer, KvFormat format);
uint64_t v_row_bytes(const LayerDescription& layer, KvFormat format);

// The bytes of a token in one layer alone, with `n_kv_heads` of its heads.
uint64_t kv_bytes_per_token(const LayerDescription& layer, int64_t n_kv_heads,
                            const CacheType& type);

}  // namespace fp8kv
