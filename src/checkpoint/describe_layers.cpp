#include "checkpoint/describe_layers.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "checkpoint/config_values.h"

namespace fp8kv {
namespace {

using Mixings = std::vector<Mixing>;

// The number under `key`, from `least` to kLongestContext; `otherwise` where there is none.
int64_t number_or(const Json& text, const char* key, int64_t least, int64_t otherwise) {
  const auto number = text.find(key);
  return number ? in_range(*number, least, kLongestContext) : otherwise;
}

// Every so many layers, as `key` says, one has full attention: the last of them, but in the family
// that says which.
Mixings told_by_period(const Json& text, const std::string& key, int64_t n_layers, Mixing other) {
  const int64_t period = in_range(text.at(key), 1, kLongestContext);
  int64_t full = period - 1;
  if (key == "attn_layer_period") full = number_or(text, "attn_layer_offset", 0, 0);
  Mixings mixings;
  for (int64_t i = 0; i < n_layers; ++i)
    mixings.push_back(i % period == full ? Mixing::full : other);
  return mixings;
}

Mixings told_by_types(const Json& types, int64_t n_layers) {
  constexpr std::array<std::pair<const char*, Mixing>, 7> kTypes = {{
      {"attention", Mixing::full},
      {"chunked_attention", Mixing::chunks},
      {"conv", Mixing::recurrent},
      {"full_attention", Mixing::full},
      {"linear_attention", Mixing::recurrent},
      {"mamba", Mixing::recurrent},
      {"sliding_attention", Mixing::window},
  }};
  if (!types.is_array() || types.size() != static_cast<size_t>(n_layers)) {
    fail(types.where(), ": is ", types.brief(), ", expected an array of ",
         count_of(static_cast<uint64_t>(n_layers), "layer type"));
  }
  Mixings mixings;
  for (size_t i = 0; i < types.size(); ++i) {
    const std::string name = types[i].as_string();
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

// Nemotron-H: a letter for each layer, which has attention, Mamba or a feed-forward part alone.
Mixings told_by_letters(const Json& pattern, int64_t n_layers) {
  const std::string letters = pattern.as_string();
  const bool known = letters.find_first_not_of("*M-E") == letters.npos;
  if (!known || letters.size() != static_cast<size_t>(n_layers)) {
    fail(pattern.where(), ": is ", pattern.brief(), ", expected ",
         count_of(static_cast<uint64_t>(n_layers), "letter"),
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

// Layers between which full ones are, for families whose configs may leave the pattern out.
int64_t usual_pattern(const std::string& type) {
  if (type == "gemma2") return 2;
  if (type.starts_with("gemma3")) return 6;
  return type == "cohere2" ? 4 : 0;
}

// What transformers makes of a sliding_window without a list of layers.
Mixings told_by_window(const Json& text, const ModelDescription& model) {
  const auto n_layers = static_cast<size_t>(model.n_layers());
  const std::string type = text.get_string("model_type", "");
  const auto is = [&](const char* its_type, const char* architecture) {
    return type == its_type || model.architecture == architecture;
  };
  // Some configs of Llama's have the key, which the model never reads.
  if (!text.find("sliding_window") || is("llama", "LlamaForCausalLM")) {
    return Mixings(n_layers, Mixing::full);
  }
  if (is("mistral", "MistralForCausalLM")) return Mixings(n_layers, Mixing::window);
  const bool qwen = type.starts_with("qwen") || model.architecture.starts_with("Qwen");
  if (!text.get_bool("use_sliding_window", !qwen)) return Mixings(n_layers, Mixing::full);
  if (const auto first = text.find("max_window_layers")) {
    const int64_t full = std::min(in_range(*first, 0, kLongestContext), model.n_layers());
    Mixings mixings(n_layers, Mixing::window);
    std::fill_n(mixings.begin(), full, Mixing::full);
    return mixings;
  }
  if (text.has("sliding_window_pattern")) {
    return told_by_period(text, "sliding_window_pattern", model.n_layers(), Mixing::window);
  }
  const auto pattern = static_cast<size_t>(usual_pattern(type));
  Mixings mixings(n_layers, Mixing::window);
  for (size_t i = 0; pattern > 0 && i < n_layers; ++i) {
    if (i % pattern == pattern - 1) mixings[i] = Mixing::full;
  }
  return mixings;
}

Mixings told_mixings(const Json& text, const ModelDescription& model) {
  const int64_t n_layers = model.n_layers();
  if (const auto pattern = text.find("hybrid_override_pattern")) {
    return told_by_letters(*pattern, n_layers);
  }
  for (const char* key :
       {"attn_layer_indices", "layers_block_type", "block_types", "attn_type_list"}) {
    if (const auto other = text.find(key)) {
      fail(other->where(), ": which layers hold what cache is said in a way not known here");
    }
  }
  if (const auto types = text.find("layer_types")) return told_by_types(*types, n_layers);
  for (const char* key : {"full_attention_interval", "attn_layer_period"}) {
    if (text.has(key)) return told_by_period(text, key, n_layers, Mixing::recurrent);
  }
  return told_by_window(text, model);
}

// Gemma 4: the layers without a window have heads of another size, and may have fewer of K and V.
void set_global_heads(const Json& text, LayerDescription& layer) {
  if (const auto size = text.find("global_head_dim")) {
    layer.k_head_dim = layer.v_head_dim = in_range(*size, kLargestDim);
  }
  layer.n_kv_heads = number_or(text, "num_global_key_value_heads", 1, layer.n_kv_heads);
}

void set_mixing(const Json& text, Mixing mixing, LayerDescription& layer) {
  layer.mixing = mixing;
  switch (mixing) {
    case Mixing::full:
      return set_global_heads(text, layer);
    case Mixing::window:
      layer.reach = in_range(text.at("sliding_window"), kLongestContext);
      return;
    case Mixing::chunks:
      layer.reach = in_range(text.at("attention_chunk_size"), kLongestContext);
      return;
    case Mixing::recurrent:
    case Mixing::none:
    case Mixing::unknown:
      layer.n_kv_heads = layer.k_head_dim = layer.v_head_dim = 0;
  }
}

// The last layers may read the cache of the last layer of their kind before them.
void set_caches(const Json& text, ModelDescription& out) {
  const int64_t first_shared = out.n_layers() - number_or(text, "num_kv_shared_layers", 0, 0);
  std::map<Mixing, int64_t> last;  // that has its own, by kind
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

void describe_mixing(const Json& text, ModelDescription& out) {
  const Mixings mixings = told_mixings(text, out);
  for (size_t i = 0; i < out.layers.size(); ++i) set_mixing(text, mixings[i], out.layers[i]);
  set_caches(text, out);
}

}  // namespace fp8kv
