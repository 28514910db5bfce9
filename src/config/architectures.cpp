#include "config/architectures.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>
#include <vector>

#include "base/error.h"
#include "config/describe/describe_layers.h"
#include "config/families/groups/first_architectures.h"
#include "config/families/groups/latent_architectures.h"
#include "config/families/groups/llama_variants.h"
#include "config/families/groups/mamba_architectures.h"
#include "config/families/groups/older_architectures.h"
#include "config/families/groups/state_architectures.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_rows.h"
#include "config/values/config_values.h"
#include "config/values/language_config.h"

namespace fp8kv {
namespace {

// A larger model whose language model has its own row, found by the model_type of the inner config.
struct Wrapper {
  std::string_view name;
  std::string_view model_type;
  bool uncapped = false;  // transformers caps logits without the wrapper alone
};

constexpr Wrapper kOuterModels[] = {
    {"Exaone4_5_ForConditionalGeneration", "exaone4_5"},
    {"Gemma3ForConditionalGeneration", "gemma3", true},
    {"Gemma3nForConditionalGeneration", "gemma3n"},
    {"Gemma4ForConditionalGeneration", "gemma4"},
    {"Glm46VForConditionalGeneration", "glm46v"},
    {"Idefics3ForConditionalGeneration", "idefics3"},
    {"InklingForConditionalGeneration", "inkling_mm_model"},
    {"InternS1ForConditionalGeneration", "interns1"},
    {"InternVLChatModel", "internvl_chat"},
    {"InternVLForConditionalGeneration", "internvl"},
    {"KimiK25ForConditionalGeneration", "kimi_k25"},
    {"Llama4ForConditionalGeneration", "llama4"},
    {"LlavaForConditionalGeneration", "llava"},
    {"LlavaNextForConditionalGeneration", "llava_next"},
    {"LlavaOnevisionForConditionalGeneration", "llava_onevision"},
    {"Mistral3ForConditionalGeneration", "mistral3"},
    {"NemotronH_Nano_Omni_Reasoning_V3", "NemotronH_Nano_Omni_Reasoning_V3"},
    {"NemotronH_Nano_VL_V2", "NemotronH_Nano_VL_V2"},
    {"NemotronH_Omni_Reasoning_V3", "nemotron_h_omni"},
    {"Qwen2VLForConditionalGeneration", "qwen2_vl"},
    {"Qwen2_5OmniForConditionalGeneration", "qwen2_5_omni"},
    {"Qwen2_5OmniModel", "qwen2_5_omni"},
    {"Qwen2_5_VLForConditionalGeneration", "qwen2_5_vl"},
    {"Qwen3VLForConditionalGeneration", "qwen3_vl"},
    {"Qwen3_5ForConditionalGeneration", "qwen3_5"},
    {"Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe"},
    {"Qwen4ExpForConditionalGeneration", "qwen4_exp"},
    {"SmolVLMForConditionalGeneration", "smolvlm"},
};

std::string supported() {
  std::vector<std::string> names;
  for (const Architecture& row : architectures()) names.push_back(row.name);
  for (const Wrapper& wrapper : kOuterModels) names.emplace_back(wrapper.name);
  return "supported are " + join(names);
}

bool same_ignoring_case(std::string_view a, std::string_view b) {
  const auto same = [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

// Transformers chooses the code by model_type, while most other programs go by the architecture.
void check_model_type(std::string_view name, std::string_view model_type, const Json& config,
                      std::span<const std::string_view> more_types = {}) {
  const auto type = config.find("model_type");
  if (!type || type->as_string() == model_type) return;
  if (std::find(more_types.begin(), more_types.end(), type->as_string()) != more_types.end())
    return;
  throw Error(cat(type->where(), ": is ", type->brief(), ", but 'architectures' names ",
                  quote(name), ", which is ", quote(model_type)),
              "correct the one that is wrong: runtimes differ in which they go by");
}

bool has_type(const Architecture& row, const std::string& type) {
  return row.model_type == type ||
         std::find(row.inner_types.begin(), row.inner_types.end(), type) != row.inner_types.end();
}

void check_uncapped(const Wrapper& wrapper, const Json& text) {
  const auto cap = text.find("final_logit_softcapping");
  if (!wrapper.uncapped || !cap) return;
  throw Error(cat(cap->where(), ": is ", cap->brief(), ", expected null in ", wrapper.name),
              "transformers does not cap logits there, and other runtimes do");
}

// The row of the language model inside the wrapper.
const Architecture& inner_row(const Wrapper& wrapper, const Json& config) {
  check_model_type(wrapper.name, wrapper.model_type, config);
  const Json text = language_config(config), type = text.at("model_type");
  check_uncapped(wrapper, text);
  for (const Architecture& row : architectures()) {
    if (has_type(row, type.as_string())) return row;
  }
  throw Error(cat(type.where(), ": is ", type.brief(), ", a language model of ", wrapper.name,
                  " that is not supported"),
              supported());
}

constexpr const char* kDescribed = "plan, inspect, extract and inject take such a model";

// Throws for a layer whose mixing the architecture does not support. REQUIRES a layer without full
// attention.
[[noreturn]] void refuse_mixing(const Architecture& architecture, const Json& config,
                                const ModelConfig& model, int64_t layer) {
  const auto member = mixing_member(config);
  FP8KV_ASSERT(member);
  const bool each = member->is_array() && member->size() == model.layers.size();
  const Json said = each ? (*member)[static_cast<size_t>(layer)] : *member;
  throw Error(cat(said.where(), ": is ", said.brief(), ", which makes the mixing of layer ", layer,
                  " ", quote(mixing_name(model.layer(layer).mixing)), ", expected ",
                  architecture.windows  ? "'full' or 'window' in "
                  : architecture.states ? "'full' or 'recurrent' in "
                  : architecture.chunks ? "'full' or 'chunks' in "
                                        : "'full' in ",
                  architecture.name),
              kDescribed);
}

}  // namespace

std::span<const Architecture> architectures() {
  static const std::vector<Architecture> all = [] {
    std::vector<Architecture> rows;
    for (const auto& more :
         {first_architectures(), latent_architectures(), llama_variants(), mamba_architectures(),
          older_architectures(), state_architectures(), family_rows()}) {
      rows.insert(rows.end(), more.begin(), more.end());
    }
    return rows;
  }();
  return all;
}

std::span<const TensorRow> other_tensors(std::span<const TensorRow> tensors) {
  for (const Architecture& row : architectures()) {
    if (row.tensors.data() == tensors.data()) return row.other_tensors;
    if (row.other_tensors.data() == tensors.data()) return row.tensors;
  }
  return {};
}

std::span<const TensorRow> turned_tensors(std::span<const TensorRow> tensors) {
  for (const Architecture& row : architectures()) {
    if (row.tensors.data() == tensors.data()) return row.turned_tensors;
  }
  return {};
}

const Architecture& architecture_at(const Json& config) {
  const std::string name = architecture_name(config);
  if (name.empty()) {
    throw Error(cat(config.where(), ": names no architecture under 'architectures'"), supported());
  }
  for (const Wrapper& wrapper : kOuterModels) {
    if (wrapper.name == name) return inner_row(wrapper, config);
  }
  std::string hint;
  for (const Architecture& row : architectures()) {
    if (row.name == name) {
      check_model_type(row.name, row.model_type, config, row.more_types);
      return row;
    }
    // Only a difference in case counts as a slip. Qwen3 is close to Qwen2 in letters, but another
    // model.
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
    const bool chunked = architecture.chunks && layer.mixing == Mixing::chunks;
    if (architecture.states && layer.mixing == Mixing::recurrent) continue;
    if (architecture.blocks && layer.mixing == Mixing::none) continue;
    if (layer.mixing != Mixing::full && !windowed && !chunked)
      refuse_mixing(architecture, config, model, i);
    if (architecture.shapes) continue;
    if (!architecture.own_kv_heads && layer.n_kv_heads != model.n_kv_heads()) {
      refuse("num_global_key_value_heads", "as many KV heads in every layer");
    }
    if (layer.k_head_dim != model.head_dim()) {
      refuse("global_head_dim", "heads of the same size in every layer");
    }
    if (layer.v_head_dim > layer.k_head_dim ||
        (layer.v_head_dim < layer.k_head_dim && !layer.v_in_k && !architecture.narrow_v)) {
      refuse("v_head_dim", "heads of the same size for K and V");
    }
    if (!model.writes_cache(i)) {
      refuse("num_kv_shared_layers", "a KV cache of its own in every layer");
    }
  }
  if (model.cache_layers() == 0) {
    const auto member = mixing_member(config);
    throw Error(cat(member ? member->where() : config.where(),
                    ": gives no layer attention, so that there is no KV cache"),
                "what this tool does is for models with one");
  }
  if (!architecture.shapes && config.get_bool("attention_k_eq_v", false))
    refuse("attention_k_eq_v", "V of its own");
}

}  // namespace fp8kv
