// The indexer of sparse attention: its scratch memory and its ops, in order. It chooses the tokens
// that each row sees, by keys of its own.
#pragma once

#include <cstdint>
#include <optional>

#include "core/model/config.h"
#include "model/parts/attention_inputs.h"
#include "model/parts/forward_memory.h"
#include "model/parts/wide_rows.h"
#include "model/weights/weights.h"

namespace fp8kv {

// Rows that an indexer reads.
struct IndexerRows {
  ConstTensorView x;         // [n, dim]: the layer's input, normalised
  ConstTensorView q_vector;  // [n, q_rank]: see LatentForward::q_vector; x without latents
  // Their positions, which a rotation has not if nothing rotates.
  const Batch& batch;
  // With IndexerConfig::weighted: the rotation of pooled keys, if there is one, see
  // RopeAppend::rope, and the memory of the tokens before, see TokenPools::state.
  ConstTensorView pool_rope = {};
  TensorView pool_state = {};
};

class IndexerForward {
 public:
  // Whether `positions` tokens are more than the indexer chooses. If not, each row sees every token
  // before it, and nothing is computed.
  static bool is_needed(const ModelConfig& config, int64_t positions) {
    return config.indexer && positions > config.indexer->most_tokens();
  }

  // REQUIRES is_needed; `config` outlives this.
  IndexerForward(ForwardMemory& memory, const ModelConfig& config, int64_t max_positions);

  // Appends the rows' keys, then chooses tokens.
  //   rotation: of the layer's attention, which rotates by the same angles
  void run(const IndexerWeights& weights, const IndexerRows& rows, const RopeAppend& rotation,
           const TokenChoice& choice);

 private:
  ConstTensorView weights_of(const Linear& heads, const ConstTensorView& rows);
  void append(const IndexerWeights& weights, TokenScores& scores, const RopeAppend& rotation);
  void append_unrotated(const TokenScores& scores, const RopeAppend& rotation);
  void pool_keys(const IndexerWeights& weights, const IndexerRows& rows);
  void append_pooled(const IndexerWeights& weights, const TokenScores& scores,
                     const RopeAppend& rotation);

  Backend& backend_;
  const IndexerConfig& indexer_;
  Tensor q_;               // [max_rows, n_heads, head_dim]
  Tensor k_;               // [max_rows, head_dim]
  Tensor tokens_, gates_;  // [max_rows, parts * head_dim]: what is pooled; empty unless weighted
  Tensor turned_;          // like q_, with what rotates first; empty without rotates_last
  Tensor rotated_;         // [max_rows, rope_dim]: the elements of the key that rotate
  Tensor rest_;            // [max_rows, head_dim - rope_dim]
  // [max_rows, n_heads] f32: ones if nothing weighs the heads; empty with by_kv_head
  Tensor weights_;
  Tensor scores_;                 // see TokenScores::scores
  std::optional<WideRows> wide_;  // [dim]; with f32_weights
};

}  // namespace fp8kv
