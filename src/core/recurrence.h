// Layers that keep a state of fixed size, instead of a KV cache or beside it: their sizes as data,
// for the config and for the ops that compute with it.
#pragma once

#include <cstdint>
#include <limits>

namespace fp8kv {

// What a token does to the state S [k_dim, v_dim] of a head, once that has decayed.
enum class StateUpdate {
  delta,  // S += k (v - S^T k) * strength: gated DeltaNet
  add     // S += k v * strength: Mamba-2
};

// How what is read from a state is normalised, and multiplied by the SiLU of a gate.
enum class StateNorm {
  none,    // it is gated alone: Falcon-H1
  heads,   // every head, all with the same v_dim weights, before it is gated: gated DeltaNet
  groups,  // a group for each of k_heads, with weights of its own, before it is gated: Falcon-H1
  groups_after_gate  // the same once gated: Mamba-2
};

// What multiplies the rows that go into a state's products, what these give, and what comes out at
// the end: Falcon-H1.
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

struct RecurrenceConfig {
  StateUpdate update = StateUpdate::delta;
  StateNorm norm = StateNorm::heads;
  bool skip = false;       // V times a number of its head is added to what is read: Mamba-2
  bool conv_bias = false;  // of the convolution
  bool bias = false;       // of the products before it
  bool out_bias = false;   // of that at the end
  StateMultipliers multipliers;
  // What a time step is brought within; see Recurrence.
  double least_step = 0.0;
  double most_step = std::numeric_limits<double>::infinity();
  int64_t k_heads = 0;  // of Q and K, each for v_heads / k_heads heads of V in a row
  int64_t k_dim = 0;
  int64_t v_heads = 0;
  int64_t v_dim = 0;
  int64_t conv_width = 0;  // tokens that the convolution before it sees

  int64_t k_width() const { return k_heads * k_dim; }
  int64_t v_width() const { return v_heads * v_dim; }
  int64_t conv_channels() const { return 2 * k_width() + v_width(); }
  bool operator==(const RecurrenceConfig&) const = default;
};

// What ops take at most, far above any model.
inline constexpr int64_t kMostConvWidth = 8;
inline constexpr int64_t kMostStateRows = 256;  // k_dim

// Added to the squared length of Q and K where they are brought to length 1.
inline constexpr double kUnitEps = 1e-6;

// A head's state lies in blocks of so many columns, [blocks][k_dim][kStateColumns] f32; columns
// beyond v_dim are 0.
inline constexpr int64_t kStateColumns = 32;

constexpr int64_t state_blocks(int64_t v_dim) {
  return (v_dim + kStateColumns - 1) / kStateColumns;
}
constexpr int64_t state_elements(int64_t v_heads, int64_t k_dim, int64_t v_dim) {
  return v_heads * state_blocks(v_dim) * k_dim * kStateColumns;
}

}  // namespace fp8kv
