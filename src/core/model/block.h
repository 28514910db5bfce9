// The building blocks of a layer besides its matrices, as data: each model family is one choice of
// them. The defaults are Llama's.
#pragma once

#include <optional>

namespace fp8kv {

enum class NormKind {
  rms,   // x / rms(x) * weight
  layer  // (x - mean) / deviation * weight + bias
};

// The places of norms around a block, which is attention or the feed-forward part; f is the block.
enum class NormPlace {
  before,     // x + f(norm(x))
  after,      // x + norm(f(x)): OLMo 2
  around,     // x + norm(f(norm(x))), each with weights of its own: Gemma 2, GLM-4
  after_add,  // norm(x + f(x)), and none at the end of the model: OPT 350m
  none,       // x + f(x), and none at the end of the model: hyper-connections norm, in Qwen 4 Exp
  carried     // n + f(n) with n = norm(x): the normed stream goes on. See StreamFactors
};

constexpr bool norms_input(NormPlace place) {
  return place == NormPlace::before || place == NormPlace::around || place == NormPlace::carried;
}
// Whether the stream is normed before the logits.
constexpr bool norms_end(NormPlace place) {
  return place != NormPlace::after_add && place != NormPlace::none;
}
// Whether a norm has a place behind the block.
constexpr bool norms_behind(NormPlace place) {
  return place != NormPlace::before && place != NormPlace::none && place != NormPlace::carried;
}
// Whether a block's output is normed before it joins the stream. after_add norms the stream
// instead.
constexpr bool norms_output(NormPlace place) {
  return place == NormPlace::after || place == NormPlace::around;
}

// How Q and K are normalised before they are rotated.
enum class QkNorm {
  none,
  per_head,   // every head by itself, all with the same head_dim weights
  whole,      // all heads together: OLMo 2
  own_heads,  // every head by itself, with weights of its own: Cohere; REQUIRES NormKind::layer
  plain,      // every head by itself, without weights, in layers that rotate: Llama 4
  plain_all   // every head by itself, without weights, in all layers: Muse Glimmer
};

constexpr bool is_plain(QkNorm norm) {
  return norm == QkNorm::plain || norm == QkNorm::plain_all;
}

// Rotary embedding turns elements in pairs. Which elements form a pair, among the first `n` that
// rotate.
enum class RopePairs {
  halves,     // i and i + n / 2
  neighbours  // 2 i and 2 i + 1: GLM, Cohere
};

// The bias that attention scores get for the distance between two tokens.
enum class ScoreBias {
  none,
  alibi,      // the key's position times the head's slope
  alibi_bf16  // ALiBi with bf16 slopes, rounded to bf16 and scaled like q . k: Falcon
};

enum class Activation { silu, gelu_tanh, gelu_erf, relu, relu_squared, sigmoid, softplus };
inline constexpr int kActivations = static_cast<int>(Activation::softplus) + 1;

// A gate that attention's output is multiplied by: a function of a product of attention's input.
enum class AttentionGate {
  none,
  sigmoid,           // of a number for each element: Qwen3-Next
  softplus,          // likewise
  sigmoid_of_heads,  // of one number for each head: Step 3.5
  softplus_of_heads  // likewise: Laguna
};

constexpr bool is_of_heads(AttentionGate gate) {
  return gate == AttentionGate::sigmoid_of_heads || gate == AttentionGate::softplus_of_heads;
}

// xIELU: positive * x * x + beta * x for x above 0, else negative * (exp(min(x, eps)) - 1 - x) +
// beta * x. NaN stays NaN.
struct Xielu {
  float positive = 0.0f;
  float negative = 0.0f;
  float beta = 0.0f;
  float eps = 0.0f;
};

// The form of a SwiGLU of clamped factors, with u as `up` clamped to +-limit, and g as min(gate,
// limit). SiTU approaches its limits smoothly instead.
enum class SwigluForm {
  plus_one,  // g * sigmoid(alpha * g) * (u + 1): gpt-oss
  silu,      // silu(g) * u: HY V4
  after,     // min(silu(gate), limit) * u: Step 3.5
  situ       // alpha * tanh(gate / alpha) * sigmoid(gate) * limit * tanh(up / limit): Kimi K3
};

// NaN stays NaN.
struct ClampedSwiglu {
  float alpha = 1.702f;  // of SwigluForm::plus_one and situ alone
  float limit = 7.0f;
  SwigluForm form = SwigluForm::plus_one;
  bool operator==(const ClampedSwiglu&) const = default;
};

// The clamped SwiGLUs of a layer, each in place of the model's activation.
struct LayerSwiglu {
  std::optional<ClampedSwiglu> routed = {};  // of its routed experts
  std::optional<ClampedSwiglu> dense = {};   // of its dense part or its shared expert
  bool operator==(const LayerSwiglu&) const = default;
};

// These multiply the normed stream where the output of a block joins it: MiniMax Text 01. REQUIRES
// NormPlace::carried.
struct StreamFactors {
  double attention = 1.0;
  double state = 1.0;
  double feed_forward = 1.0;
  bool operator==(const StreamFactors&) const = default;
};

struct BlockConfig {
  NormKind norm = NormKind::rms;  // the kind of every norm in the model
  bool norm_plus_one = false;     // files store weight - 1: Gemma
  bool last_norm_whole = false;   // but for the norm at the end of the model: Muse Glimmer
  bool norm_bias = false;         // REQUIRES NormKind::layer
  NormPlace norm_place = NormPlace::before;
  // Layers that keep a state have their norms before the blocks all the same: OLMo Hybrid. REQUIRES
  // NormPlace::after.
  bool states_normed_before = false;
  // Both blocks read the layer's input: x + attention(x) + feed_forward(x). Not with after_add.
  bool parallel = false;
  bool shared_norm = false;  // both blocks read the same norm; REQUIRES `parallel`
  QkNorm qk_norm = QkNorm::none;
  double q_multiplier = 1.0;  // multiplies normed Q; REQUIRES a plain QkNorm
  AttentionGate attention_gate = AttentionGate::none;  // see TensorRole::attn_gate
  bool qk_norm_bias = false;  // REQUIRES QkNorm::per_head and NormKind::layer
  bool v_norm = false;        // every head of V is normalised, without weights: Gemma 4
  // Every head of attention's output is normalised, without weights, before its gate: Muse Spark.
  bool attended_norm = false;
  bool bare_attn_post_norm = false;  // the norm of attention's output has no weights: Muse Spark
  // The norm of the feed-forward part's output multiplies by its weights before it divides.
  bool ffn_post_weighs_first = false;
  // Gates weigh the stream and a block's output where the two meet: see ResidualGate. 0: none do.
  double gate_temperature = 0.0;
  Activation activation = Activation::silu;
  // Replaces `activation` by xIELU, with numbers of the layer's own. REQUIRES no gate.
  bool xielu = false;
  bool gated = true;         // down(activation(gate(x)) * up(x)); else down(activation(up(x)))
  bool head_bias = false;    // lm_head has a bias, even if its weight is the embedding
  bool head_normed = false;  // rows of lm_head are scaled to length 1: Baichuan 2
  double embed_multiplier = 1.0;
  double residual_multiplier = 1.0;  // multiplies each block's output before it joins the stream
  // Multipliers within one block: attention's input and output, V before it is cached, the product
  // of the gate matrix, and the output of the feed-forward part.
  double attention_in_multiplier = 1.0;
  double attention_out_multiplier = 1.0;
  double v_multiplier = 1.0;
  double gate_multiplier = 1.0;
  double down_multiplier = 1.0;
  double logit_multiplier = 1.0;
  double attention_scale = 0.0;  // multiplies q . k; 0: 1 / sqrt(head_dim)
  // Layer i also multiplies scores by 1 / (i + 1): GPT-2.
  bool attention_scale_by_layer = false;
  // Scores are divided by head_dim and not by its root: Inkling. REQUIRES no attention_scale.
  bool attention_scale_by_size = false;
  ScoreBias score_bias = ScoreBias::none;
  bool sinks = false;         // each head has an extra learned score in its softmax: gpt-oss
  bool window_sinks = false;  // only layers with a window have them; REQUIRES `sinks`: MiMo V2
  double score_cap = 0.0;     // q . k, scaled, becomes cap * tanh(score / cap); 0: left alone
  double logit_cap = 0.0;     // the same cap for logits
  bool layer_scale = false;   // each layer multiplies the stream by its own number at its end
  bool ffn_scale = false;     // each layer multiplies its feed-forward part's output by a number
  StreamFactors stream_factors;
  // Differential attention: the second half of the heads is subtracted from the first, times a
  // number of the layer. See DifferentialForward. REQUIRES even numbers of heads. DiffLlama
  bool differential = false;
};

// Whether a block's output, times `multiplier`, is added to the residual stream unchanged.
inline bool adds_plainly(NormPlace place, const BlockConfig& block, double multiplier) {
  return !norms_output(place) && place != NormPlace::carried &&
         block.residual_multiplier * multiplier == 1.0;
}

}  // namespace fp8kv
