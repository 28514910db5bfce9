#include "quantize/linear_choice.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "checkpoint/linear_modules.h"
#include "checkpoint/quant_config.h"
#include "config/families/tensor_table.h"
#include "scales/write/quant_block.h"

namespace fp8kv {
namespace {

constexpr std::string_view kWeight = ".weight";

enum class Treatment {
  quantised,
  left_alone,  // a matrix that a product multiplies by
  no_matrix    // a table, or numbers for each column
};

Treatment treatment_of(TensorRole role) {
  switch (role) {
    case TensorRole::q:
    case TensorRole::k:
    case TensorRole::v:
    case TensorRole::q_down:
    case TensorRole::latent:
    case TensorRole::k_rope:
    case TensorRole::k_up:
    case TensorRole::v_up:
    case TensorRole::o:
    case TensorRole::state_q:
    case TensorRole::state_k:
    case TensorRole::state_v:
    case TensorRole::state_gate:
    case TensorRole::state_out:
    case TensorRole::attn_gate:
    case TensorRole::gate:
    case TensorRole::up:
    case TensorRole::down:
    case TensorRole::experts_in:
    case TensorRole::experts_out:
    case TensorRole::expert_gate:
    case TensorRole::expert_up:
    case TensorRole::expert_down:
    case TensorRole::shared_gate:
    case TensorRole::shared_up:
    case TensorRole::shared_down:
      return Treatment::quantised;
    case TensorRole::embed_up:
    case TensorRole::state_step:
    case TensorRole::state_strength:
    case TensorRole::layer_projection:
    case TensorRole::stream_in:
    case TensorRole::stream_router:
    case TensorRole::stream_predict:
    case TensorRole::stream_correct:
    case TensorRole::stream_out:
    case TensorRole::laurel_down:
    case TensorRole::laurel_up:
    case TensorRole::input_gate:
    case TensorRole::input_out:
    case TensorRole::router:
    case TensorRole::shared_router:
    case TensorRole::head_down:
    case TensorRole::lm_head:
      return Treatment::left_alone;
    case TensorRole::embedding:
    case TensorRole::positions:
    case TensorRole::layer_embedding:
    case TensorRole::layer_projection_norm:
    case TensorRole::input_post_norm:
    case TensorRole::layer_scale:
    case TensorRole::stream_norm:
    case TensorRole::stream_scale:
    case TensorRole::laurel_norm:
    case TensorRole::attn_norm:
    case TensorRole::q_down_norm:
    case TensorRole::latent_norm:
    case TensorRole::q_norm:
    case TensorRole::k_norm:
    case TensorRole::sinks:
    case TensorRole::conv_q:
    case TensorRole::conv_k:
    case TensorRole::conv_v:
    case TensorRole::state_decay:
    case TensorRole::state_step_bias:
    case TensorRole::state_skip:
    case TensorRole::state_norm:
    case TensorRole::attn_post_norm:
    case TensorRole::ffn_norm:
    case TensorRole::router_norm:
    case TensorRole::choice_bias:
    case TensorRole::expert_factors:
    case TensorRole::experts_norm:
    case TensorRole::experts_post_norm:
    case TensorRole::dense_post_norm:
    case TensorRole::ffn_post_norm:
    case TensorRole::norm:
      break;
  }
  return Treatment::no_matrix;
}

std::string module_of(std::string_view tensor) {
  if (tensor.ends_with(kWeight)) tensor.remove_suffix(kWeight.size());
  return std::string(tensor);
}

void check_layout(const Checkpoint& checkpoint, const ModelTensor& tensor) {
  const std::string what =
      cat(quote(checkpoint.folder().string()), ": tensor ", quote(tensor.name), ": ");
  if (tensor.layout == TensorLayout::transposed) {
    throw Error(cat(what, "is stored with its rows as columns, which no runtime reads in FP8"),
                "serve this model in 16 bit; its KV cache can be FP8: see 'fp8kv calibrate'");
  }
  if (tensor.shape.rank() == 2) return;
  throw Error(cat(what, "has all experts of a layer in one tensor, ", tensor.shape.text(),
                  ", which no runtime reads in FP8"),
              "serve this model in 16 bit; its KV cache can be FP8: see 'fp8kv calibrate'");
}

// "re:.*vision_tower\..*" of "model.vision_tower.layers.0.mlp.fc1": runtimes and versions of them
// differ in what stands before.
std::string part_pattern(std::string_view name) {
  constexpr std::string_view kModel = "model.";
  if (name.starts_with(kModel)) name.remove_prefix(kModel.size());
  return cat("re:.*", name.substr(0, name.find('.')), "\\..*");
}

// What the model's own table does not know: other parts, and layers behind the last.
std::string ignored_other(const std::string& module, const ModelConfig& config) {
  const bool in_layers = module.starts_with(cat(config.model_prefix, "layers."));
  return in_layers ? module : part_pattern(module);
}

}  // namespace

void check_unquantised(const Checkpoint& checkpoint) {
  const QuantConfig quant = read_quant_config(checkpoint);
  if (quant.method == QuantMethod::none) return;
  const bool weights = !is_for_cache_alone(quant, checkpoint.tensors());
  throw Error(cat(quote(checkpoint.folder().string()), ": is quantised by ", quote(quant.name()),
                  weights ? " already" : " for its KV cache"),
              weights ? "quantise the model in 16 bit that this one was made from"
                      : cat("quantise the model that this one was made from; --scales ",
                            quote(checkpoint.folder().string()), " brings its scales along"));
}

LinearChoice choose_linears(const Checkpoint& checkpoint, const ModelConfig& config) {
  LinearChoice choice;
  std::set<std::string> ignore = {"lm_head", config.lm_head};
  std::set<std::string> known;
  const auto add = [&](const std::vector<ModelTensor>& tensors) {
    for (const ModelTensor& tensor : tensors) {
      known.insert(tensor.name);
      const Treatment treatment = treatment_of(tensor.parts.front().role);
      if (tensor.is_bias || treatment == Treatment::no_matrix) continue;
      if (treatment == Treatment::left_alone) {
        ignore.insert(module_of(tensor.name));
      } else {
        check_layout(checkpoint, tensor);
        choice.quantised.insert(tensor.name);
      }
    }
  };
  for (int64_t layer = 0; layer < config.n_layers(); ++layer) add(layer_tensors(config, layer));
  add(outer_tensors(config));
  for (const std::string& module : linear_modules(checkpoint.tensors())) {
    if (!known.contains(cat(module, kWeight))) ignore.insert(ignored_other(module, config));
  }
  choice.ignore.assign(ignore.begin(), ignore.end());
  return choice;
}

}  // namespace fp8kv
