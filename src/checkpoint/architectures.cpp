#include "checkpoint/architectures.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <vector>

#include "base/error.h"
#include "checkpoint/tensor_table.h"

namespace fp8kv {
namespace {

// Unlike Json::find, true for a key whose value is null.
bool mentions(const Json& object, std::string_view key) {
  for (size_t i = 0; i < object.size(); ++i) {
    if (object.key(i) == key) return true;
  }
  return false;
}

std::string supported() {
  std::vector<std::string> rows;
  for (const Architecture& row : architectures())
    rows.push_back(cat(row.name, " (", row.summary, ")"));
  return "supported are " + join(rows);
}

bool same_ignoring_case(std::string_view a, std::string_view b) {
  const auto same = [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

// Throws unless all layers are alike: attention to all tokens before, or `windows` to the last of
// them, with the same heads and a cache of their own.
void check_layers(const Json& config, const ModelConfig& model, bool windows) {
  if (model.unclear) throw *model.unclear;
  const auto types = config.find("layer_types");
  const int64_t heads = model.n_kv_heads(), size = model.head_dim();
  for (int64_t i = 0; i < model.n_layers(); ++i) {
    const LayerDescription& layer = model.layer(i);
    const bool attends =
        layer.mixing == Mixing::full || (windows && layer.mixing == Mixing::window);
    if (!attends && types) {
      const Json type = (*types)[static_cast<size_t>(i)];
      throw Error(
          cat(type.where(), ": the layer type ", quote(type.as_string()), " is not supported"),
          windows ? "supported are 'full_attention' and 'sliding_attention'"
                  : "supported is 'full_attention'");
    }
    const bool alike = layer.n_kv_heads == heads && layer.k_head_dim == size &&
                       layer.v_head_dim == size && model.writes_cache(i);
    if (attends && alike) continue;
    fail(config.where(), ": makes layer ", i, " one of a kind that ", model.architecture,
         " does not have");
  }
}

void parse_llama(const Json& config, ModelConfig& out) {
  check_layers(config, out, false);
  out.qkv_bias = config.get_bool("attention_bias", false);
  out.o_bias = out.qkv_bias;
  out.mlp_bias = config.get_bool("mlp_bias", false);
}

void parse_mistral(const Json& config, ModelConfig& out) {
  if (!mentions(config, "sliding_window")) {
    throw Error(cat(config.where(), ": the key 'sliding_window' is missing"),
                "write \"sliding_window\": null when every token sees all before it");
  }
  check_layers(config, out, true);
  const Mixing wanted = config.has("sliding_window") ? Mixing::window : Mixing::full;
  for (const LayerDescription& layer : out.layers) {
    if (layer.mixing == wanted) continue;
    fail(config.at("layer_types").where(),
         ": does not fit sliding_window, which is one for all layers of MistralForCausalLM");
  }
}

// The window of Qwen's models: from some layer on, or in the layers that are listed. It has a
// switch, which is off where it is not there.
void check_qwen_window(const Json& config, const ModelConfig& model) {
  const bool used = config.get_bool("use_sliding_window", false);
  const bool usable = used && config.has("sliding_window");
  const auto types = config.find("layer_types");
  for (size_t i = 0; types && i < types->size() && !usable; ++i) {
    if ((*types)[i].as_string() != "sliding_attention") continue;
    fail(types->where(), ": has sliding_attention, but ",
         used ? "sliding_window is not given" : "use_sliding_window is not true");
  }
  check_layers(config, model, true);
  if (usable && !types) config.at("max_window_layers");
}

void parse_qwen2(const Json& config, ModelConfig& out) {
  out.qkv_bias = true;
  check_qwen_window(config, out);
}

void parse_qwen3(const Json& config, ModelConfig& out) {
  out.qkv_bias = config.get_bool("attention_bias", false);
  out.o_bias = out.qkv_bias;
  out.block.qk_norm = QkNorm::per_head;
  check_qwen_window(config, out);
}

constexpr NamedActivation kSilu[] = {{"silu", Activation::silu}, {"swish", Activation::silu}};

const std::array<Architecture, 4> kArchitectures = {{
    {"LlamaForCausalLM", "Llama 1, 2, 3.x and what shares their form", parse_llama, llama_tensors(),
     kSilu},
    {"MistralForCausalLM", "Mistral, with or without sliding window", parse_mistral,
     llama_tensors(), kSilu},
    {"Qwen2ForCausalLM", "Qwen 2, 2.5", parse_qwen2, llama_tensors(), kSilu},
    {"Qwen3ForCausalLM", "Qwen 3, dense", parse_qwen3, llama_tensors(), kSilu},
}};

}  // namespace

std::span<const Architecture> architectures() {
  return kArchitectures;
}

const Architecture& architecture_at(const Json& config) {
  const auto names = config.find("architectures");
  const std::string name = names && names->size() > 0 ? (*names)[0].as_string() : "";
  if (name.empty()) {
    throw Error(cat(config.where(), ": names no architecture under 'architectures'"), supported());
  }
  std::string hint;
  for (const Architecture& row : architectures()) {
    if (row.name == name) return row;
    // Only case is taken for a slip: Qwen3 is near Qwen2 in letters, and another model.
    if (same_ignoring_case(row.name, name)) hint = cat(" (did you mean ", quote(row.name), "?)");
  }
  if (hint.empty() && config.has("auto_map")) {
    hint = ", and it brings code of its own (auto_map), which is never run here";
  }
  throw Error(cat(names->where(), ": ", quote(name), " is not supported", hint), supported());
}

}  // namespace fp8kv
