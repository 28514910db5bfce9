#include "config/describe/describe_layers.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "config/describe/block_configs.h"
#include "config/describe/describe_indexer.h"
#include "config/describe/describe_pools.h"
#include "config/describe/describe_state.h"
#include "config/describe/layer_shapes.h"
#include "config/describe/usual_mixings.h"
#include "config/describe/window_keys.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

// The number under `key`, from `least` to kLongestContext, or `otherwise` if the key is missing.
int64_t number_or(const Json& text, const char* key, int64_t least, int64_t otherwise) {
  const auto number = text.find(key);
  return number ? in_range(*number, least, kLongestContext) : otherwise;
}

Mixings told_by_interval(const Json&, const Json& interval, const ModelDescription& model) {
  const int64_t period = in_range(interval, kLongestContext);
  return periodic(period, period - 1, Mixing::recurrent, model.n_layers());
}

// Ling 2.5 and 3: the last layer of every group has attention, and layers behind the last whole
// group.
Mixings told_by_group(const Json&, const Json& size, const ModelDescription& model) {
  const int64_t group = in_range(size, kLongestContext), n_layers = model.n_layers();
  Mixings mixings = periodic(group, group - 1, Mixing::recurrent, n_layers);
  for (int64_t i = n_layers / group * group; i < n_layers; ++i) {
    mixings[static_cast<size_t>(i)] = Mixing::full;
  }
  return mixings;
}

// Jamba. No other family says which layer of the period has attention.
Mixings told_by_period(const Json& text, const Json& period, const ModelDescription& model) {
  const int64_t n = in_range(period, kLongestContext);
  const auto offset = text.find("attn_layer_offset");
  constexpr int64_t kUsual = 4;  // transformers' default
  const int64_t full = offset ? in_range(*offset, 0, n - 1) : std::min(kUsual, n - 1);
  return periodic(n, full, Mixing::recurrent, model.n_layers());
}

// The list has the numbers of the layers with attention. The layers between are short convolutions
// (LFM2) or Mamba (Bamba).
Mixings told_by_numbers(const Json&, const Json& numbers, const ModelDescription& model) {
  if (!numbers.is_array()) {
    fail(numbers.where(), ": is ", numbers.brief(), ", expected an array of layer numbers");
  }
  Mixings mixings(model.layers.size(), Mixing::recurrent);
  for (size_t i = 0; i < numbers.size(); ++i) {
    mixings[static_cast<size_t>(in_range(numbers[i], 0, model.n_layers() - 1))] = Mixing::full;
  }
  return mixings;
}

// Llama 4: layers that rotate Q and K attend within their chunk, the others attend to all tokens.
// Despite its name, no_rope_layers has a 1 for each layer that rotates. An empty list counts as a
// missing one.
Mixings told_by_rotation(const Json& text, const Json&, const ModelDescription& model) {
  const auto listed = text.find("no_rope_layers");
  if (!listed || (listed->is_array() && listed->size() == 0)) {
    const int64_t interval = number_or(text, "no_rope_layer_interval", 1, 4);
    return periodic(interval, interval - 1, Mixing::chunks, model.n_layers());
  }
  if (!listed->is_array() || listed->size() != model.layers.size()) {
    fail(listed->where(), ": is ", listed->brief(), ", expected an array of ",
         count_of(model.layers.size(), "number"));
  }
  Mixings mixings;
  for (size_t i = 0; i < listed->size(); ++i) {
    mixings.push_back((*listed)[i].as_int() != 0 ? Mixing::chunks : Mixing::full);
  }
  return mixings;
}

// MiniMax: 1 stands for attention, 0 for linear attention.
Mixings told_by_attention(const Json&, const Json& types, const ModelDescription& model) {
  if (!types.is_array() || types.size() != model.layers.size()) {
    fail(types.where(), ": is ", types.brief(), ", expected an array of ",
         count_of(model.layers.size(), "number"));
  }
  Mixings mixings;
  for (size_t i = 0; i < types.size(); ++i) {
    mixings.push_back(in_range(types[i], 0, 1) == 1 ? Mixing::full : Mixing::recurrent);
  }
  return mixings;
}

Mixings told_otherwise(const Json&, const Json& member, const ModelDescription&) {
  fail(member.where(), ": which layers hold what cache is said in a way not known here");
}

// Kimi Linear: two lists have the numbers of layers, from 1 on.
Mixings told_by_two_lists(const Json&, const Json& linear, const ModelDescription& model) {
  Mixings mixings(model.layers.size(), Mixing::unknown);
  const auto set = [&](const char* key, Mixing mixing) {
    const Json numbers = linear.at(key);
    for (size_t i = 0; i < numbers.size(); ++i) {
      Mixing& of_layer = mixings[static_cast<size_t>(in_range(numbers[i], model.n_layers()) - 1)];
      if (of_layer != Mixing::unknown) {
        fail(numbers[i].where(), ": is ", numbers[i].brief(), ", which is a layer of two lists");
      }
      of_layer = mixing;
    }
  };
  set("full_attn_layers", Mixing::full);
  set("kda_layers", Mixing::recurrent);
  const auto missing = std::find(mixings.begin(), mixings.end(), Mixing::unknown);
  if (missing == mixings.end()) return mixings;
  fail(linear.where(), ": has layer ", missing - mixings.begin() + 1,
       " in neither full_attn_layers nor kda_layers");
}

// MiMo V2: 1 stands for a window.
Mixings told_by_windows(const Json& text, const Json& windows, const ModelDescription& model) {
  if (!text.get_string("model_type", "").starts_with("mimo_v2")) {
    return told_otherwise(text, windows, model);
  }
  if (!windows.is_array() || windows.size() != model.layers.size()) {
    fail(windows.where(), ": is ", windows.brief(), ", expected an array of ",
         count_of(model.layers.size(), "number"));
  }
  Mixings mixings;
  for (size_t i = 0; i < windows.size(); ++i) {
    mixings.push_back(in_range(windows[i], 0, 1) == 1 ? Mixing::window : Mixing::full);
  }
  return mixings;
}

// The layer type that means a sparse indexer, in transformers 5 and in earlier versions.
bool is_indexed(std::string_view type) {
  return type == "indexed_attention" || type == "deepseek_sparse_attention" ||
         type == "minimax_m3_sparse" || type == "qwen_sparse_attention";
}

Mixings told_by_types(const Json& text, const Json& types, const ModelDescription& model) {
  constexpr std::array<std::pair<const char*, Mixing>, 9> kTypes = {{
      {"attention", Mixing::full},
      {"chunked_attention", Mixing::chunks},
      {"conv", Mixing::recurrent},
      {"full_attention", Mixing::full},
      {"linear_attention", Mixing::recurrent},
      {"mamba", Mixing::recurrent},
      {"mlp", Mixing::none},
      {"moe", Mixing::none},
      {"sliding_attention", Mixing::window},
  }};
  if (!types.is_array() || types.size() != model.layers.size()) {
    fail(types.where(), ": is ", types.brief(), ", expected an array of ",
         count_of(model.layers.size(), "layer type"));
  }
  Mixings mixings;
  for (size_t i = 0; i < types.size(); ++i) {
    const std::string name = types[i].as_string();
    if (name == "hybrid" && is_zamba2(text)) {
      mixings.push_back(Mixing::full);
      continue;
    }
    if (has_indexer(text) && is_indexed(name)) {
      mixings.push_back(Mixing::full);  // attention to every token that the indexer picks
      continue;
    }
    const auto* found = std::find_if(kTypes.begin(), kTypes.end(),
                                     [&](const auto& type) { return type.first == name; });
    if (found == kTypes.end()) {
      std::vector<std::string> known;
      for (const auto& type : kTypes) known.push_back(quote(type.first));
      throw Error(cat(types[i].where(), ": the layer type ", quote(name), " is not known"),
                  "known are " + join(known));
    }
    mixings.push_back(found->second);
  }
  return mixings;
}

// Nemotron-H: one letter for each layer, which is attention, Mamba or a feed-forward part alone.
Mixings told_by_letters(const Json&, const Json& pattern, const ModelDescription& model) {
  const std::string letters = pattern.as_string();
  const bool known = letters.find_first_not_of("*M-E") == letters.npos;
  if (!known || letters.size() != model.layers.size()) {
    fail(pattern.where(), ": is ", pattern.brief(), ", expected ",
         count_of(model.layers.size(), "letter"),
         " of * (attention), M (Mamba), - (MLP) and E (experts)");
  }
  Mixings mixings;
  for (const char letter : letters) {
    mixings.push_back(letter == '*'   ? Mixing::full
                      : letter == 'M' ? Mixing::recurrent
                                      : Mixing::none);
  }
  return mixings;
}

// Nemotron by architecture search: some layers lack attention.
Mixings told_by_blocks(const Json& text, const Json& blocks, const ModelDescription& model) {
  if (!has_block_configs(text)) return told_otherwise(text, blocks, model);
  Mixings mixings;
  for (const BlockShape& block : block_shapes(text, model)) {
    mixings.push_back(block.n_kv_heads > 0 ? Mixing::full : Mixing::none);
  }
  return mixings;
}

// SmolLM3: the layers without rotation have the window.
Mixings windows_without_rotation(const Json& text, const ModelDescription& model) {
  Mixings mixings(model.layers.size(), Mixing::full);
  if (!text.get_bool("use_sliding_window", false)) return mixings;
  const Mixings rotating = told_by_rotation(text, text, model);
  for (size_t i = 0; i < mixings.size(); ++i) {
    if (rotating[i] == Mixing::full) mixings[i] = Mixing::window;
  }
  return mixings;
}

// Handles a sliding_window without a list of layers, the way transformers does.
Mixings told_by_window(const Json& text, const Json&, const ModelDescription& model) {
  const int64_t n_layers = model.n_layers();
  const Mixings full(model.layers.size(), Mixing::full);
  const Mixings windows(model.layers.size(), Mixing::window);
  const std::string type = text.get_string("model_type", "");
  const auto is = [&](const char* its_type, const char* architecture) {
    return type == its_type || model.architecture == architecture;
  };
  // Some configs of Llama models have the key, but the model never reads it.
  if (is("llama", "LlamaForCausalLM")) return full;
  if (is("laguna", "LagunaForCausalLM")) return full;  // its list alone says which have windows
  if (is("mistral", "MistralForCausalLM")) return windows;
  if (is("smollm3", "SmolLM3ForCausalLM")) return windows_without_rotation(text, model);
  const bool qwen = type.starts_with("qwen") || model.architecture.starts_with("Qwen");
  const auto reads = [&](const char* key) { return reads_window_key(text, key); };
  if (reads("use_sliding_window") && !text.get_bool("use_sliding_window", !qwen)) return full;
  if (const auto first = text.find("max_window_layers"); first && reads("max_window_layers")) {
    Mixings mixings = windows;
    std::fill_n(mixings.begin(), std::min(in_range(*first, 0, kLongestContext), n_layers),
                Mixing::full);
    return mixings;
  }
  WindowPattern pattern = usual_pattern(text);
  if (reads("sliding_window_pattern")) {
    const int64_t period = number_or(text, "sliding_window_pattern", 1, pattern.period);
    pattern = {period, period - 1};
  }
  if (pattern.period == 0) return windows;
  return periodic(pattern.period, pattern.full, Mixing::window, n_layers);
}

struct Decider {
  const char* key;
  Mixings (*told)(const Json& text, const Json& member, const ModelDescription& model);
};

// The first key that the config has decides.
constexpr Decider kDeciders[] = {
    {"hybrid_override_pattern", told_by_letters},
    {"attn_layer_indices", told_by_numbers},
    {"layers_block_type", told_by_types},
    {"block_configs", told_by_blocks},
    {"block_types", told_otherwise},
    {"attn_type_list", told_by_attention},
    {"hybrid_layer_pattern", told_by_windows},
    {"layer_types", told_by_types},
    {"linear_attn_config", told_by_two_lists},
    {"full_attn_idxs", told_by_numbers},
    {"full_attention_interval", told_by_interval},
    {"layer_group_size", told_by_group},
    {"attn_layer_period", told_by_period},
    {"attention_chunk_size", told_by_rotation},
    {"sliding_window", told_by_window},
};

constexpr std::string_view kWindowKey = "sliding_window";

bool decides(const Json& text, const Decider& row) {
  // GLM-5 Next has only sizes there.
  if (row.told == told_by_two_lists && is_glm5_next(text)) return false;
  if (row.key == kWindowKey && usual_window(text) > 0) return true;
  return text.has(row.key) && reads_window_key(text, row.key);
}

const Decider* find_decider(const Json& text) {
  const auto* found = std::find_if(std::begin(kDeciders), std::end(kDeciders),
                                   [&](const Decider& row) { return decides(text, row); });
  return found == std::end(kDeciders) ? nullptr : found;
}

Mixings told_mixings(const Json& text, const ModelDescription& model) {
  if (has_pools(text)) return Mixings(model.layers.size(), Mixing::window);
  const Decider* decider = find_decider(text);
  if (decider == nullptr) return usual_mixings(text, model);
  const auto member = text.find(decider->key);
  return decider->told(text, member ? *member : text, model);
}

int64_t chunk_of(const Json& text) {
  if (const auto chunk = text.find("attention_chunk_size")) {
    return in_range(*chunk, kLongestContext);
  }
  fail(text.where(),
       ": the key 'attention_chunk_size' is missing, though there are layers that need it");
}

void set_mixing(const Json& text, Mixing mixing, LayerDescription& layer) {
  layer.mixing = mixing;
  switch (mixing) {
    case Mixing::full:
      // Falcon-H1's layers have attention and Mamba side by side. Those of Zamba 2 have Mamba after
      // attention.
      if (text.get_string("model_type", "") == "falcon_h1" || is_zamba2(text)) {
        layer.state_bytes = state_bytes_of(text);
        layer.state_beside = true;
      }
      return set_global_heads(text, layer);
    case Mixing::window:
      return set_window(text, layer);
    case Mixing::chunks:
      layer.reach = chunk_of(text);
      return;
    case Mixing::recurrent:
      layer.state_bytes = state_bytes_of(text);
      [[fallthrough]];
    case Mixing::none:
    case Mixing::unknown:
      layer.n_kv_heads = layer.k_head_dim = layer.v_head_dim = 0;
      layer.index_bytes = layer.most_seen = 0;
  }
}

// The last layers may read the cache of an earlier layer: the last one of their own kind.
void set_caches(const Json& text, ModelDescription& out) {
  const bool gemma3n = text.get_string("model_type", "").starts_with("gemma3n");
  const int64_t usual = gemma3n ? 15 : 0;  // if the config does not say
  const int64_t first_shared = out.n_layers() - number_or(text, "num_kv_shared_layers", 0, usual);
  std::map<Mixing, int64_t> last;  // the last layer with its own cache, by kind
  for (int64_t i = 0; i < out.n_layers(); ++i) {
    LayerDescription& layer = out.layers[static_cast<size_t>(i)];
    if (layer.n_kv_heads == 0) continue;
    if (i < first_shared) last[layer.mixing] = i;
    const auto found = last.find(layer.mixing);
    if (found == last.end()) {
      fail(text.at("num_kv_shared_layers").where(), ": leaves layer ", i,
           " no layer of its kind whose cache it could read");
    }
    layer.cache_of = found->second;
  }
}

}  // namespace

std::optional<Json> mixing_member(const Json& text) {
  const Decider* decider = find_decider(text);
  return decider == nullptr ? std::nullopt : text.find(decider->key);
}

void describe_mixing(const Json& text, ModelDescription& out) {
  const Mixings mixings = told_mixings(text, out);
  for (size_t i = 0; i < out.layers.size(); ++i) set_mixing(text, mixings[i], out.layers[i]);
  set_listed_heads(text, out);
  set_caches(text, out);
}

}  // namespace fp8kv
