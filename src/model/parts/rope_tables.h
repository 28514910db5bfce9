// A model's rotations as tables on the backend, and what rotates by them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/model/config.h"
#include "model/parts/attention_inputs.h"
#include "model/parts/forward_memory.h"

namespace fp8kv {

class RopeTables {
 public:
  // For positions below `max_positions`. `config` outlives this.
  RopeTables(ForwardMemory& memory, const ModelConfig& config, int64_t max_positions);

  // Uses the config's RoPE number `rope`; -1: rotates by nothing.
  RopeAppend rotation(int32_t rope, const AttentionInputs& inputs, const Batch& batch,
                      const PagedKv& kv, const std::optional<TensorView>& magnitudes) const;

  // Multiplies Q by its growth, if the rotation has a table of it.
  void grow_q(int32_t rope, const RopeAppend& args) const;

 private:
  struct Table {
    Tensor rows;                   // [max_positions, rotary_dim] f32
    std::optional<Tensor> q_rows;  // if Q has a table of its own
    // [max_positions, head_dim] f32: Q's multiplier, for heads that rotate in a part alone
    std::optional<Tensor> q_growth;
    RopePairs pairs = RopePairs::halves;
  };

  static Table make(ForwardMemory& memory, const RopeConfig& rope, int64_t head_dim,
                    int64_t positions);

  Backend& backend_;
  DType round_to_;
  std::vector<Table> tables_;  // one for each of config.ropes; may be empty
  Table none_;                 // a rotation by nothing, at position 0
  Tensor no_positions_;        // [max_rows] i32: all 0
};

// `heads` in place of Q, without K and V: they rotate, and nothing is appended or observed.
RopeAppend rotate_alone(const TensorView& heads, const RopeAppend& args);

}  // namespace fp8kv
