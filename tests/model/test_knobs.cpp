// A test of the tests: for each feature of only some families, a golden fails without it. So nobody
// can leave out a knob unnoticed.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "checkpoint/read_model_config.h"
#include "support/models/family_model.h"
#include "support/models/goldens.h"
#include "support/models/run_model.h"

namespace fp8kv {
namespace {

struct Knob {
  const char* what;
  const char* golden;
  void (*leave_out)(ModelConfig& config);
};

// Changes the RoPE of every layer that has one.
template <class Change>
void each_rope(ModelConfig& config, const Change& change) {
  for (RopeConfig& rope : config.ropes) change(rope);
}

const Knob kKnobs[] = {
    // BlockConfig
    {"norm", "cohere", [](ModelConfig& c) { c.block.norm = NormKind::rms; }},
    {"norm_plus_one", "gemma", [](ModelConfig& c) { c.block.norm_plus_one = false; }},
    {"norm_bias", "phi", [](ModelConfig& c) { c.block.norm_bias = false; }},
    {"norm_place", "gemma2", [](ModelConfig& c) { c.block.norm_place = NormPlace::before; }},
    {"norm_place", "opt", [](ModelConfig& c) { c.block.norm_place = NormPlace::after_add; }},
    {"parallel", "gpt-neox", [](ModelConfig& c) { c.block.parallel = false; }},
    {"shared_norm", "gpt-neox", [](ModelConfig& c) { c.block.shared_norm = true; }},
    {"qk_norm, per head", "qwen3-window", [](ModelConfig& c) { c.block.qk_norm = QkNorm::none; }},
    {"qk_norm, whole", "minimax-m2", [](ModelConfig& c) { c.block.qk_norm = QkNorm::none; }},
    {"qk_norm, own heads", "cohere-qk-norm",
     [](ModelConfig& c) { c.block.qk_norm = QkNorm::none; }},
    {"qk_norm, own heads", "stablelm-qk-norm",
     [](ModelConfig& c) { c.block.qk_norm = QkNorm::none; }},
    {"qk_norm, plain", "llama4", [](ModelConfig& c) { c.block.qk_norm = QkNorm::none; }},
    {"norm, without weights", "olmo", [](ModelConfig& c) { c.block.norm = NormKind::rms; }},
    {"norm_bias, in blocks without a gate", "jais2",
     [](ModelConfig& c) { c.block.norm_bias = false; }},
    {"activation, relu squared, without a gate", "jais2",
     [](ModelConfig& c) { c.block.activation = Activation::relu; }},
    {"embed_multiplier, of the width", "afmoe",
     [](ModelConfig& c) { c.block.embed_multiplier = 1; }},
    {"layer_ropes, none in layers without a window", "afmoe",
     [](ModelConfig& c) { c.layer_ropes.assign(c.layer_ropes.size(), 0); }},
    {"experts.scale, by route_scale", "afmoe",
     [](ModelConfig& c) { c.experts->routing.scale = 1; }},
    {"norm_place, around experts", "afmoe",
     [](ModelConfig& c) { c.block.norm_place = NormPlace::before; }},
    {"layer_ropes, none in layers without a window, before experts", "exaone-moe",
     [](ModelConfig& c) { c.layer_ropes.assign(c.layer_ropes.size(), 0); }},
    {"experts.choice_bias, beside the router", "exaone-moe",
     [](ModelConfig& c) { c.experts->choice_bias = false; }},
    {"experts.shared_hidden_dim, of two", "exaone-moe-groups",
     [](ModelConfig& c) { c.experts->shared_hidden_dim = 0; }},
    {"experts.scale, by default", "exaone-moe-groups",
     [](ModelConfig& c) { c.experts->routing.scale = 1; }},
    {"pairs, in a part of each head", "gptj",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.pairs = RopePairs::halves; }); }},
    {"rotary_dim, in elements", "gptj",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.rotary_dim = 0; }); }},
    {"head_bias, beside an untied head", "gptj",
     [](ModelConfig& c) { c.block.head_bias = false; }},
    {"head_bias, beside a tied head", "gptj-tied",
     [](ModelConfig& c) { c.block.head_bias = false; }},
    {"mlp_bias, beside attention without", "gptj", [](ModelConfig& c) { c.mlp_bias = false; }},
    {"layer_ropes, two bases, beside experts", "mellum",
     [](ModelConfig& c) { c.layer_ropes.assign(c.layer_ropes.size(), c.layer_ropes.front()); }},
    {"experts.normalise, by default", "mellum-new-keys",
     [](ModelConfig& c) { c.experts->routing.normalise = false; }},
    {"qk_norm, per head, with biases, in one matrix", "persimmon",
     [](ModelConfig& c) { c.block.qk_norm = QkNorm::none, c.block.qk_norm_bias = false; }},
    {"qk_norm_bias, in one matrix", "persimmon",
     [](ModelConfig& c) { c.block.qk_norm_bias = false; }},
    {"rotary_dim, half by default", "persimmon",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.rotary_dim = 0; }); }},
    {"experts.scale, by router_scaling_factor", "hy-v3-new-keys",
     [](ModelConfig& c) { c.experts->routing.scale = 1; }},
    {"experts.normalise, by sigmoids", "hy-v3",
     [](ModelConfig& c) { c.experts->routing.normalise = false; }},
    {"experts.choice_bias, by softmax", "ernie4_5-moe",
     [](ModelConfig& c) { c.experts->choice_bias = false; }},
    {"experts.shared_hidden_dim, two by default", "ernie4_5-moe-seven",
     [](ModelConfig& c) { c.experts->shared_hidden_dim = 0; }},
    {"q_growth, of a whole Q that rotates in part", "mistral4",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.q_growth = 0; }); }},
    {"experts.normalise, by softmax beside a latent", "mistral4",
     [](ModelConfig& c) { c.experts->routing.normalise = false; }},
    {"experts.scale, by softmax beside a latent", "mistral4",
     [](ModelConfig& c) { c.experts->routing.scale = 1; }},
    {"attention_scale, by yarn of a Mistral 4", "mistral4",
     [](ModelConfig& c) { c.block.attention_scale = 0.25; }},
    {"pairs, halves of a latent's", "minicpm3",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.pairs = RopePairs::neighbours; }); }},
    {"embed_multiplier, with a latent", "minicpm3",
     [](ModelConfig& c) { c.block.embed_multiplier = 1; }},
    {"residual_multiplier, with a latent", "minicpm3",
     [](ModelConfig& c) { c.block.residual_multiplier = 1; }},
    {"logit_multiplier, with a latent", "minicpm3",
     [](ModelConfig& c) { c.block.logit_multiplier = 1; }},
    {"long_factors, of a latent", "minicpm3-longrope",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.long_factors = r.short_factors; }); }},
    {"mlp_bias, with a latent", "minicpm3-longrope", [](ModelConfig& c) { c.mlp_bias = false; }},
    {"qk_norm, per head, on by default", "sarvam-moe-seven",
     [](ModelConfig& c) { c.block.qk_norm = QkNorm::none; }},
    {"experts.scale, by default of Sarvam", "sarvam-moe-seven",
     [](ModelConfig& c) { c.experts->routing.scale = 1; }},
    {"experts.choice_bias, by Sarvam's name", "sarvam-moe",
     [](ModelConfig& c) { c.experts->choice_bias = false; }},
    {"attention_scale, by deepseek_yarn", "sarvam-mla",
     [](ModelConfig& c) { c.block.attention_scale = 0.25; }},
    {"experts.shared_hidden_dim, one by default", "sarvam-mla-seven",
     [](ModelConfig& c) { c.experts->shared_hidden_dim = 0; }},
    {"experts.multiplier", "cohere2-moe", [](ModelConfig& c) { c.experts->multiplier = 1; }},
    {"experts.score, softmax of chosen, beside attention", "cohere2-moe",
     [](ModelConfig& c) { c.experts->routing.score = RouterScore::softmax; }},
    {"layer_ropes, of a dense layer without a window", "cohere2-moe",
     [](ModelConfig& c) { c.layer_ropes[0] = -1; }},
    {"norm, rms beside attention", "cohere2-moe-sigmoid",
     [](ModelConfig& c) { c.block.norm = NormKind::layer; }},
    {"experts.normalise, by sigmoids beside attention", "cohere2-moe-sigmoid",
     [](ModelConfig& c) { c.experts->routing.normalise = false; }},
    {"logit_multiplier, by default, beside experts", "cohere2-moe-sigmoid",
     [](ModelConfig& c) { c.block.logit_multiplier = 1; }},
    {"layer_ropes, none in layers without a window, in a wrapper", "exaone4.5",
     [](ModelConfig& c) { c.layer_ropes.assign(c.layer_ropes.size(), 0); }},
    {"qk_norm, per head, in a wrapper", "intern-s1",
     [](ModelConfig& c) { c.block.qk_norm = QkNorm::none; }},
    {"qkv_bias, of a thinker", "qwen2.5-omni", [](ModelConfig& c) { c.qkv_bias = false; }},
    {"experts.normalise, of a thinker", "qwen3-omni",
     [](ModelConfig& c) { c.experts->routing.normalise = false; }},
    {"v_norm, without per-layer inputs", "gemma4-unified",
     [](ModelConfig& c) { c.block.v_norm = false; }},
    {"turning_pairs, without per-layer inputs", "gemma4-unified",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.turning_pairs = 0; }); }},
    {"qk_norm_rotated", "hunyuan-dense", [](ModelConfig& c) { c.qk_norm_rotated = false; }},
    {"theta, raised by alpha", "hunyuan-dense",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.theta = 10000; }); }},
    {"experts.normalise, by softmax", "hunyuan-moe",
     [](ModelConfig& c) { c.experts->routing.normalise = false; }},
    {"experts.shared_hidden_dim, as large as others", "hunyuan-moe",
     [](ModelConfig& c) { c.experts->shared_hidden_dim = 0; }},
    {"v_norm", "gemma4", [](ModelConfig& c) { c.block.v_norm = false; }},
    {"layer_scale", "gemma4", [](ModelConfig& c) { c.block.layer_scale = false; }},
    {"qk_norm_bias", "phi-qk-norm", [](ModelConfig& c) { c.block.qk_norm_bias = false; }},
    {"activation, silu", "llama-seven",
     [](ModelConfig& c) { c.block.activation = Activation::gelu_tanh; }},
    {"activation, gelu by tanh", "gemma",
     [](ModelConfig& c) { c.block.activation = Activation::gelu_erf; }},
    {"activation, gelu", "falcon",
     [](ModelConfig& c) { c.block.activation = Activation::gelu_tanh; }},
    {"activation, relu", "opt", [](ModelConfig& c) { c.block.activation = Activation::silu; }},
    {"gated", "llama-seven", [](ModelConfig& c) { c.block.gated = false; }},
    {"recurrence.update", "qwen3.5",
     [](ModelConfig& c) { c.recurrence->update = StateUpdate::add; }},
    {"recurrence.k_heads", "qwen3-next",
     [](ModelConfig& c) {
       c.recurrence->k_heads /= 2;
       c.recurrence->k_dim *= 2;
     }},
    {"recurrence.v_heads", "qwen3.5",
     [](ModelConfig& c) {
       c.recurrence->v_heads /= 2;
       c.recurrence->v_dim *= 2;
     }},
    {"recurrence.norm", "granite4", [](ModelConfig& c) { c.recurrence->norm = StateNorm::heads; }},
    {"recurrence.k_heads, Mamba-2", "granite4",
     [](ModelConfig& c) { c.recurrence->k_heads = 1, c.recurrence->k_dim *= 2; }},
    {"recurrence.skip", "granite4", [](ModelConfig& c) { c.recurrence->skip = false; }},
    {"recurrence.conv_bias", "granite4", [](ModelConfig& c) { c.recurrence->conv_bias = false; }},
    {"recurrence.bias", "granite4-dense", [](ModelConfig& c) { c.recurrence->bias = false; }},
    {"recurrence.out_bias", "granite4-dense",
     [](ModelConfig& c) { c.recurrence->out_bias = false; }},
    {"recurrence.norm, none", "falcon-h1-bias",
     [](ModelConfig& c) { c.recurrence->norm = StateNorm::none; }},
    {"recurrence.norm, before the gate", "falcon-h1-new-keys",
     [](ModelConfig& c) { c.recurrence->norm = StateNorm::groups_after_gate; }},
    {"recurrence.norm, after the gate", "falcon-h1-bias",
     [](ModelConfig& c) { c.recurrence->norm = StateNorm::groups; }},
    {"recurrence.multipliers.in", "falcon-h1",
     [](ModelConfig& c) { c.recurrence->multipliers.in = 1; }},
    {"recurrence.multipliers.gate", "falcon-h1",
     [](ModelConfig& c) { c.recurrence->multipliers.gate = 1; }},
    {"recurrence.multipliers.v", "falcon-h1",
     [](ModelConfig& c) { c.recurrence->multipliers.v = 1; }},
    {"recurrence.multipliers.k", "falcon-h1",
     [](ModelConfig& c) { c.recurrence->multipliers.k = 1; }},
    {"recurrence.multipliers.q", "falcon-h1",
     [](ModelConfig& c) { c.recurrence->multipliers.q = 1; }},
    {"recurrence.multipliers.step", "falcon-h1",
     [](ModelConfig& c) { c.recurrence->multipliers.step = 1; }},
    {"recurrence.multipliers.out", "falcon-h1",
     [](ModelConfig& c) { c.recurrence->multipliers.out = 1; }},
    {"recurrence.multipliers, of biases too", "falcon-h1-bias",
     [](ModelConfig& c) { c.recurrence->multipliers.gate = 1; }},
    {"attention_in_multiplier", "falcon-h1",
     [](ModelConfig& c) { c.block.attention_in_multiplier = 1; }},
    {"attention_out_multiplier", "falcon-h1",
     [](ModelConfig& c) { c.block.attention_out_multiplier = 1; }},
    {"gate_multiplier", "falcon-h1", [](ModelConfig& c) { c.block.gate_multiplier = 1; }},
    {"down_multiplier", "falcon-h1", [](ModelConfig& c) { c.block.down_multiplier = 1; }},
    {"k_factor", "falcon-h1",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.k_factor = 1; }); }},
    {"state_beside", "falcon-h1",
     [](ModelConfig& c) {
       for (LayerDescription& layer : c.layers) layer.state_beside = false;
     }},
    {"recurrence.least_step", "granite4-dense",
     [](ModelConfig& c) { c.recurrence->least_step = 0; }},
    {"recurrence.most_step", "granite4-dense", [](ModelConfig& c) { c.recurrence->most_step = 9; }},
    {"head_bias", "phi", [](ModelConfig& c) { c.block.head_bias = false; }},
    {"head_normed", "baichuan2-7b", [](ModelConfig& c) { c.block.head_normed = false; }},
    {"embed_multiplier", "gemma", [](ModelConfig& c) { c.block.embed_multiplier = 1; }},
    {"residual_multiplier", "minicpm", [](ModelConfig& c) { c.block.residual_multiplier = 1; }},
    {"logit_multiplier", "cohere", [](ModelConfig& c) { c.block.logit_multiplier = 1; }},
    {"attention_scale", "granite", [](ModelConfig& c) { c.block.attention_scale = 0; }},
    {"attention_scale_by_layer", "gpt2-scales",
     [](ModelConfig& c) { c.block.attention_scale_by_layer = false; }},
    {"score_bias", "baichuan-13b", [](ModelConfig& c) { c.block.score_bias = ScoreBias::none; }},
    {"score_bias, as Falcon's", "falcon-rw",
     [](ModelConfig& c) { c.block.score_bias = ScoreBias::alibi; }},
    {"sinks", "gpt-oss", [](ModelConfig& c) { c.block.sinks = false; }},
    {"score_cap", "gemma2", [](ModelConfig& c) { c.block.score_cap = 0; }},
    {"logit_cap", "gemma2", [](ModelConfig& c) { c.block.logit_cap = 0; }},
    // RopeConfig
    {"theta", "internlm2-heads",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.theta = 10000; }); }},
    {"linear", "gemma3-linear",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.scaling = RopeScaling::none; }); }},
    {"llama3", "smollm3-new-keys",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.scaling = RopeScaling::none; }); }},
    {"yarn", "ministral3",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.scaling = RopeScaling::none; }); }},
    {"longrope", "phi3-longrope",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.scaling = RopeScaling::none; }); }},
    {"factor, linear", "gemma3-linear",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.factor = 1; }); }},
    {"factor, llama3", "smollm3-new-keys",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.factor = 1; }); }},
    {"factor, yarn", "ministral3",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.factor = 1; }); }},
    {"low_freq_factor", "smollm3-new-keys",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.low_freq_factor = 1; }); }},
    {"high_freq_factor", "smollm3-new-keys",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.high_freq_factor = 4; }); }},
    {"original_context, llama3", "smollm3-new-keys",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.original_context = 8192; }); }},
    {"original_context, yarn", "ministral3",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.original_context = 8192; }); }},
    {"original_context, longrope", "phi3-longrope",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.original_context = 16; }); }},
    {"beta_fast", "llama-yarn",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.beta_fast = 32; }); }},
    {"beta_slow", "llama-yarn",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.beta_slow = 1; }); }},
    {"truncate", "llama-yarn",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.truncate = true; }); }},
    {"attention_factor, yarn", "llama-yarn",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.attention_factor = 1; }); }},
    {"attention_factor, longrope", "phi3-longrope",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.attention_factor = 1; }); }},
    {"rotary_dim", "stablelm",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.rotary_dim = 0; }); }},
    {"pairs", "cohere",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.pairs = RopePairs::halves; }); }},
    {"short_factors", "phi3-longrope",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.short_factors = r.long_factors; }); }},
    {"long_factors", "phi3-longrope-long",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.long_factors = r.short_factors; }); }},
    {"q_growth", "ministral3",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.q_growth = 0; }); }},
    {"q_growth_from", "llama4",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.q_growth_from = 0; }); }},
    {"turns", "llama4",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.turns = true; }); }},
    {"turning_pairs", "gemma4",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.turning_pairs = 0; }); }},
    // LatentConfig
    {"latent.norm_eps", "deepseek-v3", [](ModelConfig& c) { c.latent->norm_eps = c.norm_eps; }},
    {"attention_scale, by yarn", "deepseek-v2-lite",
     [](ModelConfig& c) { c.block.attention_scale = 0.25; }},
    {"pairs, of the last part of Q", "deepseek-v3-halves",
     [](ModelConfig& c) { each_rope(c, [](RopeConfig& r) { r.pairs = RopePairs::neighbours; }); }},
    {"qkv_bias of latent attention", "deepseek-v2-tied",
     [](ModelConfig& c) { c.qkv_bias = false; }},
    // ExpertsConfig
    {"experts.per_token", "qwen3-moe", [](ModelConfig& c) { c.experts->routing.per_token = 1; }},
    {"experts.score, softmax", "qwen2-moe",
     [](ModelConfig& c) { c.experts->routing.score = RouterScore::softmax_of_chosen; }},
    {"experts.score, softmax of chosen", "granite-moe",
     [](ModelConfig& c) { c.experts->routing.score = RouterScore::softmax; }},
    {"experts.score, sigmoid", "minimax-m2",
     [](ModelConfig& c) { c.experts->routing.score = RouterScore::softmax; }},
    {"experts.normalise", "qwen3-moe",
     [](ModelConfig& c) { c.experts->routing.normalise = false; }},
    {"experts.scale", "glm4-moe", [](ModelConfig& c) { c.experts->routing.scale = 1; }},
    {"experts.groups", "glm4-moe-groups",
     [](ModelConfig& c) { c.experts->routing.groups = c.experts->routing.groups_kept = 1; }},
    {"experts.groups_kept", "glm4-moe-groups",
     [](ModelConfig& c) { c.experts->routing.groups_kept = c.experts->routing.groups; }},
    {"experts.group_worth", "deepseek-v2",
     [](ModelConfig& c) { c.experts->routing.group_worth = GroupWorth::two_largest; }},
    {"experts.weigh_input", "llama4",
     [](ModelConfig& c) { c.experts->routing.weigh_input = false; }},
    {"experts.choice_bias", "minimax-m2", [](ModelConfig& c) { c.experts->choice_bias = false; }},
    {"experts.shared_hidden_dim", "glm4-moe",
     [](ModelConfig& c) { c.experts->shared_hidden_dim = 0; }},
    {"experts.shared_gated", "qwen2-moe", [](ModelConfig& c) { c.experts->shared_gated = false; }},
    {"experts.beside_dense", "gemma4-experts",
     [](ModelConfig& c) { c.experts->beside_dense = c.experts->router_norm = false; }},
    {"experts.factors", "gemma4-experts", [](ModelConfig& c) { c.experts->factors = false; }},
    {"experts.bias", "gpt-oss", [](ModelConfig& c) { c.experts->bias = false; }},
    {"experts.swiglu", "gpt-oss", [](ModelConfig& c) { c.experts->swiglu.reset(); }},
    {"experts.swiglu.alpha", "gpt-oss", [](ModelConfig& c) { c.experts->swiglu->alpha = 1; }},
    {"experts.swiglu.limit", "gpt-oss", [](ModelConfig& c) { c.experts->swiglu->limit = 7; }},
    {"gated, of experts", "qwen3-moe", [](ModelConfig& c) { c.block.gated = false; }},
    // StreamsConfig
    {"streams.active", "gemma3n-active", [](ModelConfig& c) { c.streams->active = 0; }},
    {"streams.scaled", "gemma3n", [](ModelConfig& c) { c.streams->scaled = false; }},
    // ModelConfig
    {"gate_cuts", "gemma3n", [](ModelConfig& c) { c.gate_cuts.clear(); }},
    {"gate_cuts, of each layer", "gemma3n", [](ModelConfig& c) { c.gate_cuts[1] = 0.3; }},
    {"laurel_rank", "gemma3n", [](ModelConfig& c) { c.laurel_rank = 0; }},
    {"layer_vocab_size", "gemma3n-active", [](ModelConfig& c) { c.layer_vocab_size = 30; }},
    {"layer_input_dim", "gemma4", [](ModelConfig& c) { c.layer_input_dim = 0; }},
    {"layer_token_multiplier", "gemma4", [](ModelConfig& c) { c.layer_token_multiplier = 1; }},
    {"v_is_k", "gemma4",
     [](ModelConfig& c) {
       for (LayerDescription& layer : c.layers) layer.v_is_k = true;
     }},
    {"position_rows", "gpt2", [](ModelConfig& c) { c.position_rows = 0; }},
    {"position_offset", "opt", [](ModelConfig& c) { c.position_offset = 0; }},
    {"norm_eps, RMS norm", "llama-seven", [](ModelConfig& c) { c.norm_eps = 1e-5; }},
    {"norm_eps, layer norm", "phi", [](ModelConfig& c) { c.norm_eps = 1e-5; }},
    {"layer_ropes, two bases", "gemma3",
     [](ModelConfig& c) { c.layer_ropes.assign(c.layer_ropes.size(), c.layer_ropes.front()); }},
    {"layer_ropes, none in some", "smollm3",
     [](ModelConfig& c) { c.layer_ropes.assign(c.layer_ropes.size(), c.layer_ropes.front()); }},
    {"qkv_bias", "qwen2-seven", [](ModelConfig& c) { c.qkv_bias = false; }},
    {"o_bias", "llama-seven", [](ModelConfig& c) { c.o_bias = false; }},
    {"mlp_bias", "llama-seven", [](ModelConfig& c) { c.mlp_bias = false; }},
    {"tied_embeddings", "mistral", [](ModelConfig& c) { c.tied_embeddings = true; }},
    {"windows", "mistral-seven",
     [](ModelConfig& c) {
       for (LayerDescription& layer : c.layers) layer.mixing = Mixing::full;
     }},
    {"windows in some layers", "olmo3",
     [](ModelConfig& c) {
       for (LayerDescription& layer : c.layers) layer.mixing = Mixing::window, layer.reach = 7;
     }},
    {"chunks", "llama4",
     [](ModelConfig& c) {
       for (LayerDescription& layer : c.layers) layer.mixing = Mixing::full;
     }},
    {"chunks that are no windows", "llama4",
     [](ModelConfig& c) {
       for (LayerDescription& layer : c.layers) {
         if (layer.mixing == Mixing::chunks) layer.mixing = Mixing::window;
       }
     }},
};

// Does not compile with a member more or less: each has a row above, or a word here.
[[maybe_unused]] void all_members_are_known() {
  // The tensors' shapes give count, hidden_dim and inner_dim, and their dtypes f32_router.
  // router_norm always comes with beside_dense.
  [[maybe_unused]] const auto [count, hidden_dim, inner_dim, routing, choice_bias, shared, gate,
                               bias, beside, router_norm, f32_router, factors, multiplier, swiglu] =
      ExpertsConfig{};
  // The tensors' shapes give conv_width.
  [[maybe_unused]] const auto [update, state_norm, skip, conv_bias, state_bias, state_out_bias,
                               multipliers, least, most, k_heads, k_dim, v_heads, of_v_dim, width] =
      RecurrenceConfig{};
  [[maybe_unused]] const auto [by_in, by_gate, by_v, by_k, by_q, by_step, by_out] =
      StateMultipliers{};
  [[maybe_unused]] const auto [alpha, limit] = ClampedSwiglu{};
  // attn_gate's rows share a tensor with Q's: without it no table of tensors fits. epsilon is too
  // small to show in any model.
  [[maybe_unused]] const auto [per_token, score, normalise, epsilon, scale, groups, kept, worth,
                               input] = Routing{};
  [[maybe_unused]] const auto [norm, plus_one, norm_bias, place, parallel, shared_norm, qk,
                               attn_gate, qk_bias, v_norm, activation, gated, head_bias,
                               head_normed, embed, residual, attention_in, attention_out, gate_by,
                               down_by, logit, attention, by_layer, score_bias, sinks, score_cap,
                               logit_cap, layer_scale] = BlockConfig{};
  // The tensors' shapes give count.
  [[maybe_unused]] const auto [streams, active, scaled] = StreamsConfig{};
  // The tensors' shapes give all of these except norm_eps.
  [[maybe_unused]] const auto [rank, rope_dim, nope_dim, v_dim, q_rank, latent_eps] =
      LatentConfig{};
  // Only the certificate uses base_grows; it is computed nowhere.
  [[maybe_unused]] const auto [theta, scaling, factor, low, high, context, fast, slow, truncate,
                               attention_factor, dim, pairs, shorts, longs, growth, from,
                               turning_pairs, grows, turns, k_factor] = RopeConfig{};
}

struct Logits {
  explicit Logits(const std::string& golden) {
    const std::filesystem::path folder = test::source_dir() / "tests/golden" / golden;
    if (std::filesystem::exists(folder)) {
      const auto [path, file, of] = test::golden(golden.c_str());
      checkpoint = Checkpoint::open(path);
      ids = of;
    } else {
      family.emplace(golden);
      checkpoint = family->checkpoint;
      ids = family->ids;
    }
    config = read_model_config(*checkpoint);
  }
  std::optional<test::FamilyModel> family;
  std::optional<Checkpoint> checkpoint;
  ModelConfig config;
  std::vector<int32_t> ids;
};

}  // namespace

TEST_CASE("knobs: one that is left out takes a golden beyond its tolerance") {
  const auto backend = make_cpu_backend(2);
  for (const Knob& knob : kKnobs) {
    CAPTURE(std::string(knob.what));
    CAPTURE(std::string(knob.golden));
    Logits model(knob.golden);
    const auto expected = test::run_model(*model.checkpoint, model.config, *backend, model.ids);
    knob.leave_out(model.config);
    const auto logits = test::run_model(*model.checkpoint, model.config, *backend, model.ids);
    CHECK(test::logit_difference(logits, expected) > 5 * test::kLogitTolerance);
  }
}

}  // namespace fp8kv
