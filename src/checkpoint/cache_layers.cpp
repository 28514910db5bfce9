#include "checkpoint/cache_layers.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "checkpoint/architectures.h"
#include "checkpoint/layer_name.h"

namespace fp8kv {
namespace {

enum class Kind { full, window, chunk, none };

constexpr int64_t kLongest = INT32_MAX;

int64_t positive(const Json& number, int64_t most = kLongest) {
  const int64_t value = number.as_int();
  if (value < 1 || value > most) {
    fail(number.where(), ": is ", number.brief(), ", expected 1 to ", most);
  }
  return value;
}

int64_t count_in(const Json& config, const char* key, int64_t otherwise) {
  const auto number = config.find(key);
  if (!number) return otherwise;
  const int64_t value = number->as_int();
  if (value < 0 || value > kLongest) {
    fail(number->where(), ": is ", number->brief(), ", expected 0 to ", kLongest);
  }
  return value;
}

Kind kind_of(const Json& type) {
  static const std::map<std::string, Kind> kKinds = {
      {"full_attention", Kind::full},
      {"attention", Kind::full},
      {"sliding_attention", Kind::window},
      {"chunked_attention", Kind::chunk},
      {"linear_attention", Kind::none},
      {"mamba", Kind::none},
      {"conv", Kind::none},
  };
  const auto found = kKinds.find(type.as_string());
  if (found != kKinds.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [name, kind] : kKinds) known.push_back(quote(name));
  throw Error(cat(type.where(), ": the layer type ", quote(type.as_string()), " is not known"),
              "known are " + join(known));
}

// Every p-th layer is of the one kind, counted so that `first` is one of them.
std::vector<Kind> periodic(int64_t n_layers, int64_t period, int64_t first, Kind kind, Kind other) {
  std::vector<Kind> kinds;
  for (int64_t i = 0; i < n_layers; ++i) kinds.push_back(i % period == first ? kind : other);
  return kinds;
}

// Layers between which full ones are, for families whose configs may leave the pattern out.
int64_t window_pattern(const Json& text) {
  if (const auto pattern = text.find("sliding_window_pattern")) return positive(*pattern);
  const std::string type = text.get_string("model_type", "");
  if (type == "gemma2") return 2;
  if (type.starts_with("gemma3")) return 6;
  return type == "cohere2" ? 4 : 0;
}

std::vector<Kind> windowed_kinds(const Json& text, int64_t n_layers) {
  const auto all = static_cast<size_t>(n_layers);
  // Absent means on, except in the families that have the switch: there it says false itself.
  if (!text.find("sliding_window") || !text.get_bool("use_sliding_window", true)) {
    return std::vector<Kind>(all, Kind::full);
  }
  if (text.has("max_window_layers")) {
    const int64_t first = count_in(text, "max_window_layers", 0);
    std::vector<Kind> kinds(all, Kind::window);
    std::fill_n(kinds.begin(), std::min(first, n_layers), Kind::full);
    return kinds;
  }
  const int64_t pattern = window_pattern(text);
  if (pattern == 0) return std::vector<Kind>(all, Kind::window);
  return periodic(n_layers, pattern, pattern - 1, Kind::full, Kind::window);
}

// Nemotron-H: a letter for each layer.
std::vector<Kind> kinds_of_pattern(const Json& pattern, int64_t n_layers) {
  const std::string letters = pattern.as_string();
  const bool known = letters.find_first_not_of("*M-E") == letters.npos;
  if (!known || letters.size() != static_cast<size_t>(n_layers)) {
    fail(pattern.where(), ": is ", pattern.brief(), ", expected ",
         count_of(static_cast<uint64_t>(n_layers), "letter"),
         " of * (attention), M (Mamba), - (MLP) and E (experts)");
  }
  std::vector<Kind> kinds;
  for (const char letter : letters) kinds.push_back(letter == '*' ? Kind::full : Kind::none);
  return kinds;
}

std::vector<Kind> kinds_of_layers(const Json& text, int64_t n_layers) {
  if (const auto pattern = text.find("hybrid_override_pattern")) {
    return kinds_of_pattern(*pattern, n_layers);
  }
  for (const char* key : {"attn_layer_indices", "layers_block_type", "block_types",
                          "global_head_dim", "attn_type_list"}) {
    if (const auto other = text.find(key)) {
      fail(other->where(), ": which layers hold what cache is said in a way not known here");
    }
  }
  if (const auto types = text.find("layer_types")) {
    if (!types->is_array() || types->size() != static_cast<size_t>(n_layers)) {
      fail(types->where(), ": is ", types->brief(), ", expected an array of ",
           count_of(static_cast<uint64_t>(n_layers), "layer type"));
    }
    std::vector<Kind> kinds;
    for (size_t i = 0; i < types->size(); ++i) kinds.push_back(kind_of((*types)[i]));
    return kinds;
  }
  if (const auto interval = text.find("full_attention_interval")) {
    const int64_t period = positive(*interval);
    return periodic(n_layers, period, period - 1, Kind::full, Kind::none);
  }
  if (const auto period = text.find("attn_layer_period")) {
    const int64_t first = count_in(text, "attn_layer_offset", 0);
    return periodic(n_layers, positive(*period), first, Kind::full, Kind::none);
  }
  return windowed_kinds(text, n_layers);
}

}  // namespace

std::vector<CacheLayer> parse_cache_layers(const Json& config) {
  const ModelConfig shape = parse_model_shape(config);
  const auto wrapped = config.find("text_config");
  const bool inside =
      wrapped && wrapped->has("num_hidden_layers") && !config.has("num_hidden_layers");
  const Json text = inside ? *wrapped : config;
  const auto v_dim = text.find("v_head_dim");
  const int64_t v_elements = v_dim ? positive(*v_dim, int64_t{1} << 28) : shape.head_dim;
  const std::vector<Kind> kinds = kinds_of_layers(text, shape.n_layers);
  const int64_t shared = count_in(text, "num_kv_shared_layers", 0);
  std::vector<CacheLayer> layers;
  for (int64_t i = 0; i < shape.n_layers; ++i) {
    const Kind kind = kinds[static_cast<size_t>(i)];
    CacheLayer layer;
    if (kind != Kind::none && i < shape.n_layers - shared) {
      layer = {shape.head_dim, v_elements, 0};
      if (kind == Kind::window) layer.window = positive(text.at("sliding_window"));
      if (kind == Kind::chunk) layer.window = positive(text.at("attention_chunk_size"));
    }
    layers.push_back(layer);
  }
  return layers;
}

void check_cache_layers(const Checkpoint& checkpoint, const std::vector<CacheLayer>& layers,
                        int64_t n_kv_heads) {
  for (const auto& [name, location] : checkpoint.tensors()) {
    const auto parts = split_layer_name(name);
    if (!parts || parts->rest != "self_attn.k_proj.weight") continue;
    // A vision tower has layers of its own.
    if (parts->prefix != "model." && parts->prefix.find("language_model") == parts->prefix.npos) {
      continue;
    }
    // Weights packed into integers have other shapes.
    const TensorEntry& entry = location.entry;
    const bool plain = is_compute_dtype(entry.dtype) || fp8_format(entry.dtype);
    if (!plain || entry.shape.rank() != 2) continue;
    if (parts->layer >= std::ssize(layers)) continue;
    const int64_t wanted = layers[static_cast<size_t>(parts->layer)].k_elements * n_kv_heads;
    if (wanted == 0 || entry.shape[0] == wanted) continue;
    throw Error(cat(quote(name), ": has ", entry.shape[0], " rows, but config.json makes it ",
                    n_kv_heads, " KV heads of ", wanted / n_kv_heads),
                "layers of different shapes, in a form that is not known here");
  }
}

}  // namespace fp8kv
