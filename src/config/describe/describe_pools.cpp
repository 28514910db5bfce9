#include "config/describe/describe_pools.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

enum class Pooling { none, overlapping, apart };

constexpr const char* kOverlapping = "compressed_sparse_attention";
constexpr const char* kApart = "heavily_compressed_attention";
// The tokens of a pool by compress_ratios, and if the config does not say.
constexpr int64_t kOverlappingTokens = 4, kApartTokens = 128;

// Bytes of one pooled row, and of an indexer's key. Sources: fp8_ds_mla in vLLM's
// models/deepseek_v4/attention.py, and describe_indexer.cpp.
constexpr int64_t kPooledBytes = 584;
int64_t pooled_key_bytes(int64_t head_dim) {
  return head_dim + (head_dim + 127) / 128 * 4;
}

int64_t share_of_token(int64_t bytes, int64_t tokens) {
  return std::max<int64_t>(1, bytes / tokens);
}

Pooling pooling_of(const Json& type) {
  const std::string name = type.as_string();
  if (name == "sliding_attention") return Pooling::none;
  if (name == kOverlapping) return Pooling::overlapping;
  if (name == kApart) return Pooling::apart;
  fail(type.where(), ": is ", type.brief(), ", expected 'sliding_attention', '", kOverlapping,
       "' or '", kApart, "'");
}

Pooling pooling_of_ratio(const Json& ratio) {
  switch (ratio.as_int()) {
    case 0:
      return Pooling::none;
    case kOverlappingTokens:
      return Pooling::overlapping;
    case kApartTokens:
      return Pooling::apart;
    default:
      fail(ratio.where(), ": is ", ratio.brief(), ", expected 0, 4 or 128");
  }
}

// Checks the length of a list. compress_ratios may go on with layers that predict later tokens.
void check_pool_list(const Json& list, size_t n_layers, bool may_go_on) {
  if (list.is_array() && (list.size() == n_layers || (may_go_on && list.size() > n_layers))) return;
  fail(list.where(), ": is ", list.brief(), ", expected an array of ", n_layers);
}

// transformers goes by layer_types, and vLLM by compress_ratios. Without either, transformers has
// two layers of kApart, and then both kinds in turn.
std::vector<Pooling> poolings(const Json& text, size_t n_layers) {
  const auto types = text.find("layer_types"), ratios = text.find("compress_ratios");
  if (types) check_pool_list(*types, n_layers, false);
  if (ratios) check_pool_list(*ratios, n_layers, true);
  std::vector<Pooling> all;
  for (size_t i = 0; i < n_layers; ++i) {
    if (ratios) {
      all.push_back(pooling_of_ratio((*ratios)[i]));
    } else if (types) {
      all.push_back(pooling_of((*types)[i]));
    } else {
      all.push_back(i >= 2 && i % 2 == 1 ? Pooling::overlapping : Pooling::apart);
    }
    if (!types || !ratios || pooling_of((*types)[i]) == all.back()) continue;
    fail((*types)[i].where(), ": is ", (*types)[i].brief(),
         ", contrary to compress_ratios at layer ", i,
         ": transformers goes by the one, and vLLM by the other");
  }
  return all;
}

// The tokens of a pool: from `key`, from compress_rates, or the usual number.
int64_t tokens_of(const Json& text, const char* kind, const char* key, int64_t usual) {
  const auto rates = text.find("compress_rates"), own = text.find(key);
  const auto inside = rates ? std::optional(rates->at(kind)) : std::nullopt;
  check_same(own, inside);
  const auto said = own ? own : inside;
  const int64_t tokens = said ? in_range(*said, 2, kLongestContext) : usual;
  if (tokens == usual || !text.has("compress_ratios")) return tokens;
  fail(said->where(), ": is ", said->brief(), ", contrary to ", usual,
       " in compress_ratios: transformers goes by the one, and vLLM by the other");
}

}  // namespace

bool has_pools(const Json& text) {
  return text.get_string("model_type", "") == "deepseek_v4";
}

LayerDescription one_row_layer(const Json& text) {
  LayerDescription layer;
  const auto heads = text.find("num_key_value_heads");
  if (heads && heads->as_int() != 1) {
    fail(heads->where(), ": is ", heads->brief(), ", expected 1: all heads read one row");
  }
  layer.n_kv_heads = 1;
  layer.k_head_dim = layer.v_head_dim = in_range(text.at("head_dim"), kLargestDim);
  layer.one_row = true;
  return layer;
}

void describe_pools(const Json& text, ModelDescription& out) {
  const int64_t overlapping =
      tokens_of(text, kOverlapping, "compress_rate_csa", kOverlappingTokens);
  const int64_t apart = tokens_of(text, kApart, "compress_rate_hca", kApartTokens);
  const int64_t index_dim = in_range(text.at("index_head_dim"), kLargestDim);
  const int64_t top_k = in_range(text.at("index_topk"), kLongestContext);
  const std::vector<Pooling> each = poolings(text, out.layers.size());
  for (size_t i = 0; i < each.size(); ++i) {
    LayerDescription& layer = out.layers[i];
    if (each[i] == Pooling::none) continue;
    layer.pool_overlaps = each[i] == Pooling::overlapping;
    layer.pool = layer.pool_overlaps ? overlapping : apart;
    layer.pool_bytes = share_of_token(kPooledBytes, layer.pool);
    if (!layer.pool_overlaps) continue;
    layer.index_bytes = share_of_token(pooled_key_bytes(index_dim), layer.pool);
    layer.most_seen = top_k * layer.pool;
  }
}

}  // namespace fp8kv
