#include "show/models/description_text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"
#include "options/kv_dtype.h"
#include "show/output.h"

namespace fp8kv {

std::string kv_heads_text(const ModelDescription& model) {
  struct Kind {
    int64_t heads;
    int64_t size;
    int64_t v_size;
    bool operator==(const Kind&) const = default;
  };
  std::vector<Kind> kinds;
  for (const LayerDescription& layer : model.layers) {
    const int64_t v_size = layer.v_in_k ? layer.k_head_dim : layer.v_head_dim;
    const Kind kind{layer.n_kv_heads, layer.k_head_dim, v_size};
    if (layer.n_kv_heads == 0 || std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) {
      continue;
    }
    kinds.push_back(kind);
  }
  if (kinds.empty()) return "no KV heads";
  std::vector<std::string> texts;
  for (const auto& [heads, size, v_size] : kinds) {
    const std::string count =
        texts.empty() ? count_of(static_cast<uint64_t>(heads), "KV head") : cat(heads);
    const std::string of_v = v_size == size ? "" : cat(" (V of ", v_size, ")");
    texts.push_back(cat(count, " of ", size, of_v));
  }
  return join(texts);
}

std::string cache_table(const ModelDescription& model) {
  if (model.cache_layers() == 0) return "";
  Table table({"KV cache", "bytes a token", "tokens in 1 GiB"});
  for (const CacheType& type : kv_dtypes(model)) {
    const uint64_t per_token = kv_bytes_per_token(model, type);
    table.add({kv_dtype_name(type), grouped(per_token), grouped((uint64_t{1} << 30) / per_token)});
  }
  return table.text();
}

void layers_json(JsonWriter& json, const ModelDescription& model) {
  json.key("cache_layers");
  model.unclear ? json.null() : json.value(model.cache_layers());
  json.key("layers").begin_array();
  for (int64_t i = 0; i < model.n_layers(); ++i) {
    const LayerDescription& layer = model.layer(i);
    json.begin_object().member("mixing", mixing_name(layer.mixing)).member("reach", layer.reach);
    if (!model.heads_by_layer.empty()) json.member("n_heads", model.n_heads_of(i));
    json.member("n_kv_heads", layer.n_kv_heads).member("k_head_dim", layer.k_head_dim);
    json.member("v_head_dim", layer.v_head_dim).key("cache_of");
    layer.cache_of < 0 ? json.null() : json.value(layer.cache_of);
    json.member("feed_forward", feed_forward_name(layer.feed_forward)).end_object();
  }
  json.end_array().key("kv_bytes_per_token");
  if (model.unclear) {
    json.null();
    return;
  }
  json.begin_object();
  for (const CacheType& type : kv_dtypes(model)) {
    json.member(kv_dtype_name(type), kv_bytes_per_token(model, type));
  }
  json.end_object();
}

}  // namespace fp8kv
