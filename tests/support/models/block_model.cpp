#include "support/models/block_model.h"

#include <filesystem>
#include <fstream>

#include "config/families/tensor_rows.h"
#include "config/families/tensor_table.h"
#include "support/models/tiny_checkpoint.h"

namespace fp8kv::test {
namespace {

// Names of tensors: Llama's, and names for tensors that Llama does not have.
std::span<const TensorRow> block_tensors() {
  static const std::vector<TensorRow> rows = [] {
    std::vector<TensorRow> all(llama_tensors().begin(), llama_tensors().end());
    all.push_back({"model.layers.{}.attn_post_norm", {TensorRole::attn_post_norm}});
    all.push_back({"model.layers.{}.ffn_post_norm", {TensorRole::ffn_post_norm}});
    const auto add = [&](std::string_view name, TensorRole role) { all.push_back({name, {role}}); };
    add("model.layers.{}.mlp.gate", TensorRole::router);
    add("model.layers.{}.mlp.gate.e_score_correction_bias", TensorRole::choice_bias);
    add("model.layers.{}.mlp.experts.{e}.gate_proj", TensorRole::expert_gate);
    add("model.layers.{}.mlp.experts.{e}.up_proj", TensorRole::expert_up);
    add("model.layers.{}.mlp.experts.{e}.down_proj", TensorRole::expert_down);
    add("model.layers.{}.mlp.shared_expert.gate_proj", TensorRole::shared_gate);
    add("model.layers.{}.mlp.shared_expert.up_proj", TensorRole::shared_up);
    add("model.layers.{}.mlp.shared_expert.down_proj", TensorRole::shared_down);
    add("model.layers.{}.mlp.shared_expert_gate", TensorRole::shared_router);
    const auto add_bare = [&](std::string_view name, TensorRole role) {
      all.push_back({.name = name, .roles = {role}, .bare = true});
    };
    add_bare("model.layers.{}.self_attn.lambda_q1", TensorRole::lambda_q1);
    add_bare("model.layers.{}.self_attn.lambda_k1", TensorRole::lambda_k1);
    add_bare("model.layers.{}.self_attn.lambda_q2", TensorRole::lambda_q2);
    add_bare("model.layers.{}.self_attn.lambda_k2", TensorRole::lambda_k2);
    return all;
  }();
  return rows;
}

TinyConfig changed(const BlockVariant& variant, DType dtype, int64_t head_dim) {
  TinyConfig config = tiny_config();
  config.dtype = dtype;
  config.head_dim = head_dim;
  variant.change(config);
  return config;
}

// The config with knobs that no config.json can express.
ModelConfig described(const TinyConfig& tiny) {
  TinyConfig plain = tiny_config();
  plain.dtype = tiny.dtype;
  plain.head_dim = tiny.head_dim;
  plain.tied_embeddings = tiny.tied_embeddings;
  ModelConfig config = model_of(plain);
  config.block = tiny.block;
  config.tensors = block_tensors();
  config.qkv_bias = tiny.qkv_bias;
  config.o_bias = tiny.o_bias;
  config.mlp_bias = tiny.mlp_bias;
  config.qk_norm_rotated = tiny.qk_norm_rotated;
  config.experts = tiny.experts;
  for (size_t layer = 0; layer < config.layers.size(); ++layer) {
    if (!has_experts(tiny, static_cast<int64_t>(layer))) continue;
    config.layers[layer].feed_forward = FeedForward::experts;
  }
  config.ropes[0].rotary_dim = tiny.rope.rotary_dim;
  config.ropes[0].pairs = tiny.rope.pairs;
  config.ropes.insert(config.ropes.end(), tiny.more_ropes.begin(), tiny.more_ropes.end());
  if (!tiny.layer_ropes.empty()) config.layer_ropes = tiny.layer_ropes;
  for (size_t layer = 0; layer < tiny.window_layers.size(); ++layer) {
    if (!tiny.window_layers[layer]) continue;
    config.layers[layer].mixing = Mixing::window;
    config.layers[layer].reach = tiny.window;
  }
  return config;
}

void add_experts(TinyConfig& config, const Routing& routing) {
  config.experts = {.count = 6, .hidden_dim = 40, .routing = routing};
}

Checkpoint written(const std::filesystem::path& folder, const TinyConfig& tiny) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "config.json") << tiny_config_json(tiny_config());  // nobody reads it
  write_tiny_weights(folder, tiny_tensors(tiny), tiny.dtype);
  return Checkpoint::open(folder);
}

}  // namespace

BlockModel::BlockModel(const BlockVariant& variant, DType dtype, int64_t head_dim)
    : tiny(changed(variant, dtype, head_dim)),
      config(described(tiny)),
      checkpoint(written(folder / "model", tiny)) {}

const std::vector<BlockVariant>& block_variants() {
  static const std::vector<BlockVariant> variants = {
      {"layer norm", [](TinyConfig& c) { c.block.norm = NormKind::layer; }},
      {"layer norm with bias",
       [](TinyConfig& c) {
         c.block.norm = NormKind::layer;
         c.block.norm_bias = true;
       }},
      {"norm weights less 1", [](TinyConfig& c) { c.block.norm_plus_one = true; }},
      {"norms after", [](TinyConfig& c) { c.block.norm_place = NormPlace::after; }},
      {"norms around", [](TinyConfig& c) { c.block.norm_place = NormPlace::around; }},
      {"norms after the sum", [](TinyConfig& c) { c.block.norm_place = NormPlace::after_add; }},
      {"a normed stream that goes on",
       [](TinyConfig& c) {
         c.block.norm_place = NormPlace::carried;
         c.block.stream_factors = {.attention = 1.6, .state = 1.0, .feed_forward = 0.7};
       }},
      {"experts beside a normed stream that goes on",
       [](TinyConfig& c) {
         add_experts(c, {.per_token = 2, .normalise = true});
         c.experts->multiplier = 1.3;
         c.block.norm_place = NormPlace::carried;
         c.block.stream_factors = {.attention = 0.8, .state = 1.0, .feed_forward = 1.9};
       }},
      {"parallel blocks", [](TinyConfig& c) { c.block.parallel = true; }},
      {"parallel blocks with one norm",
       [](TinyConfig& c) {
         c.block.parallel = true;
         c.block.shared_norm = true;
       }},
      {"heads normed together", [](TinyConfig& c) { c.block.qk_norm = QkNorm::whole; }},
      {"heads normed after their rotation",
       [](TinyConfig& c) {
         c.block.qk_norm = QkNorm::per_head;
         c.qk_norm_rotated = true;
       }},
      {"gelu_tanh", [](TinyConfig& c) { c.block.activation = Activation::gelu_tanh; }},
      {"gelu_erf", [](TinyConfig& c) { c.block.activation = Activation::gelu_erf; }},
      {"relu", [](TinyConfig& c) { c.block.activation = Activation::relu; }},
      {"relu squared", [](TinyConfig& c) { c.block.activation = Activation::relu_squared; }},
      {"no gate", [](TinyConfig& c) { c.block.gated = false; }},
      {"embedding multiplier", [](TinyConfig& c) { c.block.embed_multiplier = 2.5; }},
      {"residual multiplier", [](TinyConfig& c) { c.block.residual_multiplier = 0.375; }},
      {"logit multiplier", [](TinyConfig& c) { c.block.logit_multiplier = 0.3; }},
      {"attention scale", [](TinyConfig& c) { c.block.attention_scale = 0.7; }},
      {"score cap", [](TinyConfig& c) { c.block.score_cap = 0.8; }},
      {"logit cap", [](TinyConfig& c) { c.block.logit_cap = 1.5; }},
      {"differential attention", [](TinyConfig& c) { c.block.differential = true; }},
      {"head bias", [](TinyConfig& c) { c.block.head_bias = true; }},
      {"head bias beside the embedding",
       [](TinyConfig& c) {
         c.block.head_bias = true;
         c.tied_embeddings = true;
       }},
      {"experts", [](TinyConfig& c) { add_experts(c, {.per_token = 2}); }},
      {"experts whose weights are normalised",
       [](TinyConfig& c) { add_experts(c, {.per_token = 3, .normalise = true}); }},
      {"experts by a softmax of the chosen",
       [](TinyConfig& c) {
         add_experts(c, {.per_token = 2, .score = RouterScore::softmax_of_chosen});
       }},
      {"experts by sigmoids",
       [](TinyConfig& c) { add_experts(c, {.per_token = 2, .score = RouterScore::sigmoid}); }},
      {"experts with a bias of the choice",
       [](TinyConfig& c) {
         add_experts(c, {.per_token = 2, .score = RouterScore::sigmoid});
         c.experts->choice_bias = true;
       }},
      {"experts by a softmax with a bias of the choice",
       [](TinyConfig& c) {
         add_experts(c, {.per_token = 2, .normalise = true});
         c.experts->choice_bias = true;
       }},
      {"experts in groups",
       [](TinyConfig& c) {
         add_experts(c, {.per_token = 2,
                         .score = RouterScore::sigmoid,
                         .scale = 2.5,
                         .groups = 3,
                         .groups_kept = 2});
       }},
      {"experts in one layer",
       [](TinyConfig& c) {
         add_experts(c, {.per_token = 1});
         c.dense_layers = {0};
       }},
      {"experts beside attention",
       [](TinyConfig& c) {
         add_experts(c, {.per_token = 2});
         c.experts->shared_hidden_dim = 24;
         c.experts->multiplier = 0.5;
         c.block.parallel = c.block.shared_norm = true;
       }},
      {"experts and a shared one",
       [](TinyConfig& c) {
         add_experts(c, {.per_token = 2});
         c.experts->shared_hidden_dim = 24;
       }},
      {"experts and a shared one that is gated",
       [](TinyConfig& c) {
         add_experts(c, {.per_token = 2});
         c.experts->shared_hidden_dim = 24;
         c.experts->shared_gated = true;
       }},
      {"experts with a norm of their output",
       [](TinyConfig& c) {
         add_experts(c, {.per_token = 2});
         c.experts->shared_hidden_dim = 24;
         c.experts->post_norm = true;
         c.dense_layers = {0};
       }},
      {"experts without matrices among others",
       [](TinyConfig& c) {
         add_experts(c, {.per_token = 3, .scale = 1.5});
         c.experts->choice_bias = true;
         c.experts->identities = 4;
       }},
      {"experts with a shortcut past the next layer",
       [](TinyConfig& c) {
         add_experts(c, {.per_token = 3});
         c.experts->identities = 2;
         c.experts->shortcut = true;
         c.dense_layers = {1};
       }},
      {"experts between norms",
       [](TinyConfig& c) {
         add_experts(c, {.per_token = 2});
         c.block.norm_place = NormPlace::around;
         c.block.residual_multiplier = 0.7;
       }},
      {"as GLM-4.5",
       [](TinyConfig& c) {
         add_experts(c, {.per_token = 3,
                         .score = RouterScore::sigmoid,
                         .normalise = true,
                         .epsilon = 1e-20,
                         .scale = 1.5,
                         .groups = 2,
                         .groups_kept = 1});
         c.experts->choice_bias = true;
         c.experts->shared_hidden_dim = 16;
         c.block.qk_norm = QkNorm::per_head;
         c.qkv_bias = true;
         c.dense_layers = {0};
       }},
      {"half of a head rotated", [](TinyConfig& c) { c.rope.rotary_dim = c.head_dim / 4 * 2; }},
      {"neighbours rotated", [](TinyConfig& c) { c.rope.pairs = RopePairs::neighbours; }},
      {"neighbours in a part of a head rotated",
       [](TinyConfig& c) {
         c.rope.pairs = RopePairs::neighbours;
         c.rope.rotary_dim = c.head_dim / 4 * 2;
       }},
      {"a layer without rotation",
       [](TinyConfig& c) {
         c.layer_ropes = {0, -1};
       }},
      {"rotations by layer",
       [](TinyConfig& c) {
         c.more_ropes = {{.theta = 100.0, .scaling = RopeScaling::linear, .factor = 2.0}};
         c.layer_ropes = {1, 0};
       }},
      {"as Gemma 2",
       [](TinyConfig& c) {
         c.block.norm_plus_one = true;
         c.block.norm_place = NormPlace::around;
         c.block.activation = Activation::gelu_tanh;
         c.block.embed_multiplier = 5.65625;
         c.block.attention_scale = 0.25;
         c.block.score_cap = 5;
         c.block.logit_cap = 3;
         c.tied_embeddings = true;
         c.window = 5;
         c.window_layers = {true, false};
       }},
      {"as OLMo 2",
       [](TinyConfig& c) {
         c.block.norm_place = NormPlace::after;
         c.block.qk_norm = QkNorm::whole;
       }},
      {"as Granite",
       [](TinyConfig& c) {
         c.block.embed_multiplier = 1.5;
         c.block.attention_scale = 0.2;
         c.block.residual_multiplier = 0.22;
         c.block.logit_multiplier = 1 / 3.0;
       }},
      {"as Cohere",
       [](TinyConfig& c) {
         c.block.norm = NormKind::layer;
         c.block.parallel = true;
         c.block.shared_norm = true;
         c.block.logit_multiplier = 0.25;
         c.tied_embeddings = true;
       }},
      {"as Phi-2",
       [](TinyConfig& c) {
         c.block.norm = NormKind::layer;
         c.block.norm_bias = true;
         c.block.parallel = true;
         c.block.shared_norm = true;
         c.block.activation = Activation::gelu_tanh;
         c.block.gated = false;
         c.block.head_bias = true;
         c.qkv_bias = c.o_bias = c.mlp_bias = true;
       }},
      {"as GPT-NeoX",
       [](TinyConfig& c) {
         c.block.norm = NormKind::layer;
         c.block.norm_bias = true;
         c.block.parallel = true;
         c.block.activation = Activation::gelu_erf;
         c.block.gated = false;
         c.qkv_bias = c.o_bias = c.mlp_bias = true;
       }},
      {"as OPT 350m",
       [](TinyConfig& c) {
         c.block.norm = NormKind::layer;
         c.block.norm_bias = true;
         c.block.norm_place = NormPlace::after_add;
         c.block.activation = Activation::relu;
         c.block.gated = false;
         c.qkv_bias = c.o_bias = c.mlp_bias = true;
         c.tied_embeddings = true;
       }},
  };
  return variants;
}

}  // namespace fp8kv::test
