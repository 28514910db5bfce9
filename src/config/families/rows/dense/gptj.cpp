// GPT-J: both blocks read one layer norm, and neighbours rotate in the first part of each head.
#include "base/error.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

constexpr NamedActivation kGptjActivations[] = {{"gelu_new", Activation::gelu_tanh},
                                                {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                                {"gelu_fast", Activation::gelu_tanh},
                                                {"gelu", Activation::gelu_erf},
                                                {"relu", Activation::relu}};

const TensorRow kGptjTensors[] = {
    {"model.wte", {embedding}},      {"model.h.{}.ln_1", {attn_norm}},
    {"model.h.{}.attn.q_proj", {q}}, {"model.h.{}.attn.k_proj", {k}},
    {"model.h.{}.attn.v_proj", {v}}, {"model.h.{}.attn.out_proj", {o}},
    {"model.h.{}.mlp.fc_in", {up}},  {"model.h.{}.mlp.fc_out", {down}},
    {"model.ln_f", {norm}},          {"lm_head", {lm_head}},
};

// Transformers takes the base 10000 without scaling for granted, while vLLM reads these keys.
void check_rope(const Json& config) {
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!config.has(key)) continue;
    fail(config.at(key).where(), ": is ", config.at(key).brief(),
         ", expected null: transformers does not scale the rope of a GPT-J");
  }
  const auto theta = config.find("rope_theta");
  if (!theta || theta->as_double() == 10000) return;
  fail(theta->where(), ": is ", theta->brief(), ", expected 10000, which transformers takes");
}

void set_rotated_part(const Json& config, ModelConfig& out) {
  constexpr const char* kKey = "rotary_dim";
  if (mentions(config, kKey) && !config.has(kKey)) {
    fail(config.where(),
         ": rotary_dim: is null, expected the number of rotated elements of a head");
  }
  const auto said = config.find(kKey);
  const int64_t size = said ? in_range(*said, 2, out.head_dim()) : 64;
  if (size % 2 != 0) fail(said->where(), ": is ", size, ", expected an even number");
  if (size > out.head_dim()) {
    fail(config.where(), ": rotary_dim: is missing, which means 64, expected at most the ",
         out.head_dim(), " elements of a head");
  }
  out.ropes[0].rotary_dim = size == out.head_dim() ? 0 : size;
}

void parse_gptj(const Json& config, ModelConfig& out) {
  check_rope(config);
  set_rotated_part(config, out);
  out.mlp_bias = true;
  BlockConfig& block = out.block;
  block.norm = NormKind::layer;
  block.norm_bias = block.head_bias = true;
  block.parallel = block.shared_norm = true;
  block.gated = false;
}

}  // namespace

Architecture gptj() {
  return {.name = "GPTJForCausalLM",
          .model_type = "gptj",
          .summary = "GPT-J",
          .parse = parse_gptj,
          .tensors = kGptjTensors,
          .activations = kGptjActivations,
          .norm_eps = "layer_norm_epsilon",
          .activation = "activation_function",
          .hidden_dims = 4,
          .rope = {.pairs = RopePairs::neighbours},
          .model_prefix = "transformer."};
}

}  // namespace fp8kv
