#include "config/architectures.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <vector>

#include "base/error.h"
#include "config/config_values.h"
#include "config/describe_layers.h"
#include "config/expert_architectures.h"
#include "config/tensor_table.h"

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

// transformers chooses the code by model_type, most others by the architecture.
void check_model_type(const Architecture& row, const Json& config) {
  const auto type = config.find("model_type");
  if (!type || type->as_string() == row.model_type) return;
  throw Error(cat(type->where(), ": is ", type->brief(), ", but 'architectures' names ",
                  quote(row.name), ", which is ", quote(row.model_type)),
              "correct the one that is wrong: runtimes differ in which they go by");
}

constexpr const char* kDescribed = "plan, inspect, extract and inject take such a model";

// REQUIRES a layer without full attention.
[[noreturn]] void refuse_mixing(const Architecture& architecture, const Json& config,
                                const ModelConfig& model, int64_t layer) {
  const auto member = mixing_member(config);
  FP8KV_ASSERT(member);
  const bool each = member->is_array() && member->size() == model.layers.size();
  const Json said = each ? (*member)[static_cast<size_t>(layer)] : *member;
  throw Error(
      cat(said.where(), ": is ", said.brief(), ", which makes the mixing of layer ", layer, " ",
          quote(mixing_name(model.layer(layer).mixing)), ", expected ",
          architecture.windows ? "'full' or 'window' in " : "'full' in ", architecture.name),
      kDescribed);
}

void parse_llama(const Json& config, ModelConfig& out) {
  out.qkv_bias = config.get_bool("attention_bias", false);
  out.o_bias = out.qkv_bias;
  out.mlp_bias = config.get_bool("mlp_bias", false);
}

void parse_mistral(const Json& config, ModelConfig& out) {
  if (!mentions(config, "sliding_window")) {
    throw Error(cat(config.where(), ": the key 'sliding_window' is missing"),
                "write \"sliding_window\": null when every token sees all before it");
  }
  const Mixing wanted = config.has("sliding_window") ? Mixing::window : Mixing::full;
  for (const LayerDescription& layer : out.layers) {
    if (layer.mixing == wanted) continue;
    fail(mixing_member(config)->where(),
         ": does not fit sliding_window, which is one for all layers of MistralForCausalLM");
  }
}

// The window of Qwen's models: from some layer on, or in the layers that are listed. It has a
// switch, which is off where it is not there.
void check_qwen_window(const Json& config, const ModelConfig& model) {
  const bool used = config.get_bool("use_sliding_window", false);
  for (const LayerDescription& layer : model.layers) {
    if (used || layer.mixing != Mixing::window) continue;
    fail(mixing_member(config)->where(),
         ": has sliding_attention, but use_sliding_window is not true");
  }
  if (used && config.has("sliding_window") && !config.has("layer_types")) {
    config.at("max_window_layers");
  }
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

void parse_olmo2(const Json& config, ModelConfig& out) {
  out.qkv_bias = config.get_bool("attention_bias", false);
  out.o_bias = out.qkv_bias;
  out.block.norm_place = NormPlace::after;
  out.block.qk_norm = QkNorm::whole;
}

constexpr NamedActivation kSilu[] = {{"silu", Activation::silu}, {"swish", Activation::silu}};

const Architecture kArchitectures[] = {
    {"LlamaForCausalLM", "llama", "Llama 1, 2, 3.x and what shares their form", false, parse_llama,
     llama_tensors(), kSilu},
    {"MistralForCausalLM", "mistral", "Mistral, with or without sliding window", true,
     parse_mistral, llama_tensors(), kSilu},
    {"Qwen2ForCausalLM", "qwen2", "Qwen 2, 2.5", true, parse_qwen2, llama_tensors(), kSilu},
    {"Qwen3ForCausalLM", "qwen3", "Qwen 3, dense", true, parse_qwen3, llama_tensors(), kSilu},
    {"Olmo2ForCausalLM", "olmo2", "OLMo 2", false, parse_olmo2, olmo2_tensors(), kSilu},
    {"MixtralForCausalLM", "mixtral", "Mixtral, with or without sliding window", true,
     parse_mixtral, mixtral_tensors(), kSilu},
    {"Qwen2MoeForCausalLM", "qwen2_moe", "Qwen 1.5 and 2 with experts", false, parse_qwen2_moe,
     qwen_moe_tensors(), kSilu},
    {"Qwen3MoeForCausalLM", "qwen3_moe", "Qwen 3 with experts", false, parse_qwen3_moe,
     qwen_moe_tensors(), kSilu},
    {"OlmoeForCausalLM", "olmoe", "OLMoE", false, parse_olmoe, qwen_moe_tensors(), kSilu},
    {"GraniteMoeForCausalLM", "granitemoe", "Granite 3 with experts", false, parse_granite_moe,
     granite_moe_tensors(), kSilu},
};

}  // namespace

std::span<const Architecture> architectures() {
  return kArchitectures;
}

const Architecture& architecture_at(const Json& config) {
  const std::string name = architecture_name(config);
  if (name.empty()) {
    throw Error(cat(config.where(), ": names no architecture under 'architectures'"), supported());
  }
  std::string hint;
  for (const Architecture& row : architectures()) {
    if (row.name == name) {
      check_model_type(row, config);
      return row;
    }
    // Only case is taken for a slip: Qwen3 is near Qwen2 in letters, and another model.
    if (same_ignoring_case(row.name, name)) hint = cat(" (did you mean ", quote(row.name), "?)");
  }
  if (hint.empty() && config.has("auto_map")) {
    hint = ", and it brings code of its own (auto_map), which is never run here";
  }
  throw Error(cat(config.at("architectures").where(), ": ", quote(name), " is not supported", hint),
              supported());
}

void check_layers(const Architecture& architecture, const Json& config, const ModelConfig& model) {
  if (model.unclear) throw *model.unclear;
  const auto refuse = [&](const char* key, const char* alike) {
    const Json member = config.at(key);
    throw Error(
        cat(member.where(), ": is ", member.brief(), ", but ", architecture.name, " has ", alike),
        kDescribed);
  };
  for (int64_t i = 0; i < model.n_layers(); ++i) {
    const LayerDescription& layer = model.layer(i);
    const bool windowed = architecture.windows && layer.mixing == Mixing::window;
    if (layer.mixing != Mixing::full && !windowed) refuse_mixing(architecture, config, model, i);
    if (layer.n_kv_heads != model.n_kv_heads()) {
      refuse("num_global_key_value_heads", "as many KV heads in every layer");
    }
    if (layer.k_head_dim != model.head_dim()) {
      refuse("global_head_dim", "heads of the same size in every layer");
    }
    if (layer.v_head_dim != layer.k_head_dim) {
      refuse("v_head_dim", "heads of the same size for K and V");
    }
    if (!model.writes_cache(i)) {
      refuse("num_kv_shared_layers", "a KV cache of its own in every layer");
    }
  }
}

}  // namespace fp8kv
