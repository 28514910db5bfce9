// Layers that keep a state of fixed size, instead of a KV cache or beside it. Their sizes are data
// for the config and for the ops that update the state.
#pragma once

#include <cstdint>
#include <limits>

#include "core/model/block.h"

namespace fp8kv {

// How a token updates the state S [k_dim, v_dim] of a head, after the state has decayed.
enum class StateUpdate {
  delta,  // S += k (v - S^T k) * strength: gated DeltaNet
  add,    // S += k v * strength: Mamba-2
  none    // no state S: the convolution alone. The rows of K multiply its input, and the gate its
          // output: LFM2
};

// How the output of a state is normed, and multiplied by a gate: see RecurrenceConfig::gate.
enum class StateNorm {
  none,               // no norm, the gate alone: Falcon-H1
  heads,              // norms every head with shared v_dim weights, then gates: gated DeltaNet
  groups,             // norms groups of heads with their own weights, then gates: Falcon-H1
  groups_after_gate,  // gates, then norms those groups: Mamba-2
  whole               // norms all heads together with v_width weights, then gates: MiniMax Text 01
};

// Factors for the input of a state's products, for the result of each product, and for the final
// output: Falcon-H1. With RecurrenceConfig::qk_norm those of Q and K are for what is normed.
struct StateMultipliers {
  double in = 1.0;
  double gate = 1.0;
  double v = 1.0;
  double k = 1.0;
  double q = 1.0;
  double step = 1.0;
  double out = 1.0;
  bool operator==(const StateMultipliers&) const = default;
};

// How the slopes of fixed decays fall with the number of the layer: see decay_slope.
struct DecayLayers {
  int64_t first = 0;          // the layer whose slopes are those of the heads
  double divisor_eps = 1e-5;  // added to the number of steps between layers
  bool operator==(const DecayLayers&) const = default;
};

struct RecurrenceConfig {
  StateUpdate update = StateUpdate::delta;
  StateNorm norm = StateNorm::heads;
  bool skip = false;       // each head adds V times its own number to the output: Mamba-2
  bool conv_bias = false;  // the convolution has a bias
  bool bias = false;       // the products before the convolution have biases
  bool out_bias = false;   // the output product has a bias
  StateMultipliers multipliers;
  Activation gate = Activation::silu;  // of the output's gate
  double norm_eps = 0.0;               // of the output's norm; 0: ModelConfig::norm_eps
  double most_strength = 1.0;          // multiplies the sigmoid that makes a strength: OLMo Hybrid
  // Each row of a state decays by a step of its own: Kimi Delta Attention. REQUIRES
  // StateUpdate::delta, and as many heads of V as of K.
  bool steps_by_row = false;
  // The least logarithm of a decay, below 0, which its step approaches by a sigmoid; 0: steps have
  // no such bound. REQUIRES steps_by_row. See Recurrence.
  double least_log_decay = 0.0;
  int64_t rank = 0;        // steps and gates are products of products of this size; 0: of the input
  bool full_gate = false;  // gates are products of the input whatever the rank: Kimi K3
  // Mamba-1: the convolution is of V alone. One product of convolved V makes Q, K and a vector of
  // `rank` elements, each of which is normed; a product of this vector makes the steps. Each column
  // of a state has a step of its own, and each of its elements a rate: Jamba. REQUIRES
  // StateUpdate::add, one head of K and of V, and a rank.
  bool from_v = false;
  // Lightning attention: the state of a head decays by the same factor at every token, and takes in
  // rows as they are. The factor follows from the numbers of the head and of the layer: see
  // decay_slope. No step is computed. REQUIRES StateUpdate::add. MiniMax Text 01
  bool fixed_decays = false;
  DecayLayers decay_layers;
  bool activates = true;  // without a convolution, Q, K and V go through SiLU
  bool qk_norm = false;   // Q and K are normed, each head by itself, with shared weights: Ling 2.5
  int32_t rope = -1;      // the one of ModelConfig::ropes that rotates Q and K; -1: none: Ling 2.5
  int64_t norm_groups = 0;  // groups of StateNorm::groups; 0: as many as k_heads
  // Time steps are clamped to these bounds; see Recurrence.
  double least_step = 0.0;
  double most_step = std::numeric_limits<double>::infinity();
  int64_t k_heads = 0;  // heads of Q and K; each serves v_heads / k_heads neighbouring heads of V
  int64_t k_dim = 0;
  int64_t v_heads = 0;
  int64_t v_dim = 0;
  // Tokens that the convolution before the state sees. 0: no convolution; see `activates`
  int64_t conv_width = 0;

  // Whether layers keep a state S, and not only the tokens of the convolution.
  bool recurs() const { return update != StateUpdate::none; }

  int64_t k_width() const { return k_heads * k_dim; }
  int64_t v_width() const { return v_heads * v_dim; }
  int64_t steps() const {  // of one token
    return steps_by_row ? k_width() : from_v ? v_width() : v_heads;
  }
  // The groups of heads that are normed together, with StateNorm::groups and groups_after_gate.
  int64_t groups() const { return norm_groups > 0 ? norm_groups : k_heads; }
  int64_t conv_channels() const { return 2 * k_width() + v_width(); }
  bool operator==(const RecurrenceConfig&) const = default;
};

// The limits of the ops, far above any model.
inline constexpr int64_t kMostConvWidth = 8;
inline constexpr int64_t kMostConvBefore = 9;  // tokens before a row that its convolution may reach
inline constexpr int64_t kMostStateRows = 256;  // k_dim
inline constexpr int64_t kMostRatedRows = 64;   // k_dim where each element has a rate

// Added to the squared length of Q and K before they are scaled to length 1.
inline constexpr double kUnitEps = 1e-6;

// A head's state is stored in blocks of this many columns, as [blocks][k_dim][kStateColumns] f32.
// Columns beyond v_dim are 0.
inline constexpr int64_t kStateColumns = 32;

// With fixed decays, a state decays by exp(-slope) at each token.
double decay_slope(const RecurrenceConfig& state, int64_t head, int64_t layer, int64_t n_layers);

constexpr int64_t state_blocks(int64_t v_dim) {
  return (v_dim + kStateColumns - 1) / kStateColumns;
}
constexpr int64_t state_elements(int64_t v_heads, int64_t k_dim, int64_t v_dim) {
  return v_heads * state_blocks(v_dim) * k_dim * kStateColumns;
}

}  // namespace fp8kv
