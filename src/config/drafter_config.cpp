#include "config/drafter_config.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/families/tensor_blocks.h"
#include "config/parse_model_config.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using Role = TensorRole;

constexpr const char* kLayerConfig = "transformer_layer_config";
constexpr const char* kHiddenLayers = "eagle_aux_hidden_state_layer_ids";

// The keys of drafters that say nothing about their layer.
constexpr std::string_view kOfDrafters[] = {
    "draft_vocab_size",   kHiddenLayers,           "eagle_config",
    "target_hidden_size", "norm_before_residual",  "norm_before_fc",
    "norm_output",        "num_aux_hidden_states", "fc_norm",
    "parallel_drafting",  "target_model_type"};

TensorRows entry() {
  return {{"model.fc", {Role::hidden_product}}};
}

std::span<const TensorRow> numbered_rows() {
  static const TensorRows rows = joined({entry(),
                                         {{"model.layers.{}.hidden_norm", {Role::hidden_norm}},
                                          {"model.layers.{}.input_layernorm", {Role::token_norm}},
                                          {"model.layers.{}.self_attn.q_proj", {Role::q}},
                                          {"model.layers.{}.self_attn.k_proj", {Role::k}},
                                          {"model.layers.{}.self_attn.v_proj", {Role::v}}}});
  return rows;
}

std::span<const TensorRow> midlayer_rows() {
  static const TensorRows rows = joined({entry(),
                                         {{"model.midlayer.hidden_norm", {Role::hidden_norm}},
                                          {"model.midlayer.input_layernorm", {Role::token_norm}},
                                          {"model.midlayer.self_attn.q_proj", {Role::q}},
                                          {"model.midlayer.self_attn.k_proj", {Role::k}},
                                          {"model.midlayer.self_attn.v_proj", {Role::v}}}});
  return rows;
}

TensorRows with_embedding(std::span<const TensorRow> rows) {
  return joined({{{"model.embed_tokens", {Role::embedding}}}, {rows.begin(), rows.end()}});
}

std::span<const TensorRow> rows_for(const DrafterNames& names) {
  static const TensorRows numbered = with_embedding(numbered_rows());
  static const TensorRows midlayer = with_embedding(midlayer_rows());
  if (names.own_embedding) return names.numbered ? numbered : midlayer;
  return names.numbered ? numbered_rows() : midlayer_rows();
}

// The layer as a config of a Llama model, so that one parser reads all of them.
Json as_llama(const Json& config) {
  const auto inner = config.find(kLayerConfig);
  const Json layer = inner ? *inner : config;
  const std::string type = layer.get_string("model_type", "llama");
  if (type != "llama") {
    const Json member = layer.at("model_type");
    fail(member.where(), ": is ", member.brief(), ", expected \"llama\": layers of other drafters ",
         "are not computed here");
  }
  JsonWriter out;
  out.begin_object();
  out.key("architectures").begin_array().value("LlamaForCausalLM").end_array();
  out.member("model_type", "llama");
  for (size_t i = 0; i < layer.size(); ++i) {
    const std::string& key = layer.key(i);
    const bool other =
        key == "architectures" || key == "model_type" || key == "auto_map" ||
        key.starts_with("speculators") ||
        std::find(std::begin(kOfDrafters), std::end(kOfDrafters), key) != std::end(kOfDrafters);
    if (!other) out.key(key).value(layer.value(i));
  }
  const auto dtype = find_any(layer, {"dtype", "torch_dtype"});
  const auto outer = find_any(config, {"dtype", "torch_dtype"});
  if (!dtype && outer) out.member("dtype", *outer);
  return Json::parse(out.end_object().text(), config.where(), JsonNumbers::python);
}

// The target's layers whose inputs are read. A number at the top counts the embedding as 0, like
// vLLM. In `eagle_config` it is the number of the layer that made the state, like in SGLang.
std::vector<int64_t> hidden_layers(const Json& config) {
  auto listed = config.find(kHiddenLayers);
  const auto own = config.find("eagle_config");
  const bool of_outputs = !listed && own;
  if (of_outputs) listed = own->find(kHiddenLayers);
  if (!listed) return {};
  std::vector<int64_t> layers;
  for (size_t i = 0; i < listed->size(); ++i) {
    layers.push_back(in_range((*listed)[i], 0, kMostLayers) + (of_outputs ? 1 : 0));
  }
  if (std::ssize(layers) != kDrafterStates ||
      std::adjacent_find(layers.begin(), layers.end(), std::greater_equal()) != layers.end()) {
    fail(listed->where(), ": is ", listed->brief(), ", expected ", kDrafterStates,
         " layers in ascending order");
  }
  return layers;
}

void refuse_other_inputs(const Json& config) {
  const auto own = config.find("eagle_config");
  const auto all = own ? own->find("use_aux_hidden_state") : std::nullopt;
  if (all && !all->as_bool()) {
    fail(all->where(), ": is false: a drafter that reads the last hidden state alone is not ",
         "computed here");
  }
  for (const char* key : {"fc_norm", "norm_before_fc", "parallel_drafting", "use_aux_norm"}) {
    for (const Json& each : {config, own.value_or(config)}) {
      refuse_if_set(each, key, "another input of a drafter");
    }
  }
}

}  // namespace

ModelConfig parse_drafter_config(const Json& config, const DrafterNames& names) {
  refuse_other_inputs(config);
  ModelConfig out = parse_model_config(as_llama(config));
  if (out.n_layers() != 1) {
    throw Error(
        cat(config.where(), ": the drafter has ",
            count_of(static_cast<uint64_t>(out.n_layers()), "layer"), ", and one is computed here"),
        "its scales have to come from elsewhere");
  }
  DrafterConfig drafter{.dim = out.dim, .target_dim = out.dim};
  if (const auto width = config.find("target_hidden_size")) {
    drafter.target_dim = in_range(*width, kLargestDim);
  }
  drafter.hidden_layers = hidden_layers(config);
  out.dim = 2 * drafter.dim;
  out.drafter = drafter;
  out.block.norm_place = NormPlace::after;  // its parts are normed before they stand side by side
  out.tensors = rows_for(names);
  out.model_prefix = names.prefix;
  out.architecture = architecture_name(config);
  return out;
}

}  // namespace fp8kv
