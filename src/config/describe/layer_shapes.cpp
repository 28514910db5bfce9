#include "config/describe/layer_shapes.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "config/describe/block_configs.h"
#include "config/describe/window_keys.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

bool is_mimo_v2(const Json& text) {
  return text.get_string("model_type", "").starts_with("mimo_v2");
}

// MiMo V2: layers with a window have twice as many KV heads, unless the config says how many.
int64_t window_kv_heads(const Json& text, int64_t of_others) {
  const auto said = text.find("swa_num_key_value_heads");
  return said ? in_range(*said, kLargestDim) : 2 * of_others;
}

// MiMo V2: sliding_window_size does not count the token itself, as its authors' SGLang reads it.
int64_t window_of(const Json& text) {
  const auto before = is_mimo_v2(text) ? text.find("sliding_window_size") : std::nullopt;
  if (before) return in_range(*before, kLongestContext - 1) + 1;
  if (const auto reach = text.find("sliding_window")) return in_range(*reach, kLongestContext);
  if (const int64_t usual = usual_window(text); usual > 0) return usual;
  fail(text.where(), ": the key 'sliding_window' is missing, though there are layers that need it");
}

// Reads the number of a layer as transformers 5 writes it, padded with zeros to the width of the
// longest number. Returns -1 for a string that is no layer number.
int64_t layer_of(const std::string& number, int64_t n_layers) {
  int64_t index = -1;
  const char* const end = number.data() + number.size();
  const auto [stop, error] = std::from_chars(number.data(), end, index);
  const bool whole = error == std::errc() && stop == end;
  return whole && index >= 0 && index < n_layers ? index : -1;
}

// Sets each layer's number of query heads. Throws, naming `member`, unless each is a multiple of
// the layer's KV heads.
void set_heads(const Json& member, std::vector<int64_t> heads, ModelDescription& out) {
  for (size_t i = 0; i < heads.size(); ++i) {
    const int64_t kv_heads = out.layers[i].n_kv_heads;
    if (kv_heads > 0 && heads[i] % kv_heads == 0) continue;
    const Json own = member.is_array() ? member[i] : member;
    fail(own.where(), ": is ", own.brief(), ", which gives layer ", i, " ",
         count_of(static_cast<uint64_t>(heads[i]), "head"), ", expected a multiple of its ",
         count_of(static_cast<uint64_t>(kv_heads), "KV head"));
  }
  out.n_heads = *std::max_element(heads.begin(), heads.end());
  const auto differs = [&](int64_t each) { return each != out.n_heads; };
  if (std::any_of(heads.begin(), heads.end(), differs)) out.heads_by_layer = std::move(heads);
}

// Applies per_layer_config, in which transformers 5 lists layers that differ: {"3": {"head_dim":
// 512}}.
void set_own_heads(const Json& text, ModelDescription& out) {
  const auto layers = text.find("per_layer_config");
  if (!layers) return;
  const std::string type = text.get_string("model_type", "");
  const bool reads_heads = type == "step3p5" || type == "inkling_text";
  std::vector<int64_t> heads(out.layers.size(), out.n_heads);
  for (size_t i = 0; i < layers->size(); ++i) {
    const Json own = layers->value(i);
    const std::string& number = layers->key(i);
    const int64_t index = layer_of(number, out.n_layers());
    if (index < 0) {
      fail(own.where(), ": is for layer ", quote(number), ", expected a number from 0 to ",
           out.n_layers() - 1);
    }
    LayerDescription& layer = out.layers[static_cast<size_t>(index)];
    for (size_t at = 0; at < own.size(); ++at) {
      const std::string& key = own.key(at);
      const Json value = own.value(at);
      if (key == "head_dim") {
        layer.k_head_dim = layer.v_head_dim = in_range(value, kLargestDim);
      } else if (key == "num_key_value_heads") {
        layer.n_kv_heads = in_range(value, kLargestDim);
      } else if (key == "num_attention_heads" && reads_heads) {
        heads[static_cast<size_t>(index)] = in_range(value, kLargestDim);
      } else {
        fail(value.where(), ": is ", value.brief(),
             ", expected nothing but head_dim and num_key_value_heads of a single layer");
      }
    }
  }
  if (reads_heads) set_heads(*layers, std::move(heads), out);
}

// Nemotron by architecture search: each layer has a number of KV heads.
void set_block_heads(const Json& text, ModelDescription& out) {
  if (!has_block_configs(text)) return;
  const std::vector<BlockShape> blocks = block_shapes(text, out);
  for (size_t i = 0; i < blocks.size(); ++i) out.layers[i].n_kv_heads = blocks[i].n_kv_heads;
}

// Laguna: the number of query heads of each layer.
void set_query_heads(const Json& text, ModelDescription& out) {
  if (text.get_string("model_type", "") != "laguna") return;
  const auto listed = text.find("num_attention_heads_per_layer");
  if (!listed) return;
  if (!listed->is_array() || listed->size() != out.layers.size()) {
    fail(listed->where(), ": is ", listed->brief(), ", expected an array of ",
         count_of(out.layers.size(), "number"));
  }
  std::vector<int64_t> heads;
  for (size_t i = 0; i < listed->size(); ++i) {
    heads.push_back(in_range((*listed)[i], kLargestDim));
  }
  set_heads(*listed, std::move(heads), out);
}

}  // namespace

// Gemma 4: layers without a window have heads of another size. If K also serves as V, they have
// another number of KV heads too.
void set_global_heads(const Json& text, LayerDescription& layer) {
  constexpr int64_t kGemma4Size = 512;  // if the config does not say
  const auto size = text.find("global_head_dim");
  const bool gemma4 = text.get_string("model_type", "").starts_with("gemma4");
  if (size || (gemma4 && !text.has("per_layer_config"))) {
    layer.k_head_dim = layer.v_head_dim = size ? in_range(*size, kLargestDim) : kGemma4Size;
  }
  if (!text.get_bool("attention_k_eq_v", false)) return;
  layer.v_is_k = true;
  if (const auto heads = text.find("num_global_key_value_heads")) {
    layer.n_kv_heads = in_range(*heads, kLongestContext);
  }
}

void set_window(const Json& text, LayerDescription& layer) {
  layer.reach = window_of(text);
  if (is_mimo_v2(text)) layer.n_kv_heads = window_kv_heads(text, layer.n_kv_heads);
}

void set_listed_heads(const Json& text, ModelDescription& out) {
  set_own_heads(text, out);
  set_block_heads(text, out);
  set_query_heads(text, out);
}

}  // namespace fp8kv
