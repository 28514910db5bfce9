// The transformer: one layer, written once, for prefill and decode, calibration and inference.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "core/config.h"
#include "model/experts.h"
#include "model/latent.h"
#include "model/layer_states.h"
#include "model/streams.h"
#include "model/weights/weights.h"

namespace fp8kv {

// Of the rows of a step, rotated and rounded as the cache takes them: scratch of the Forward that
// made them, valid until its next projection.
struct AttentionInputs {
  TensorView q;     // [n, n_heads, k_head_dim]
  TensorView k, v;  // as RopeAppend has them: [n, n_kv_heads, ..]; of no heads where the layer
                    // reads another's cache
  std::optional<ConstTensorView> sinks = {};  // of the layer: see AttentionOptions
};

// What a layer made of a step's rows before its feed-forward part: none of it where it only feeds
// forward. The state's is scratch of the Forward that made it, valid until it reads another.
struct MixedRows {
  std::optional<ConstTensorView> attended = {};  // [n, n_heads, v_head_dim]
  std::optional<ConstTensorView> read = {};      // [n, v_width], of a layer that keeps a state
};

// Scratch memory and the forward pass, for steps of up to `max_rows` rows and positions below
// `max_positions`. Holds no weights.
class Forward {
 public:
  // Throws as check_computable and check_rows.
  Forward(Backend& backend, const ModelConfig& config, int64_t max_rows, int64_t max_positions);

  // Runs layer `index` on x [n, dim], in place; here and below x is [n, streams * dim] of models
  // with several streams. `kv` is the cache that it reads, and writes where
  // it is its own. With `magnitudes`, Q, K and V are observed as they are cached (see RopeAppend).
  // `state` is where a layer that keeps a state does so; see Batch::states. `input` is what
  // Embedding has for the layer, of models with such.
  void layer(int64_t index, const LayerWeights& weights, const TensorView& x, const Batch& batch,
             const PagedKv& kv, const std::optional<TensorView>& magnitudes, LayerPart part,
             const LayerState& state = {}, const std::optional<ConstTensorView>& input = {});

  // The rows of x [n, dim] through layer `index`, which keeps a state, up to its last product.
  // [n, v_width]
  TensorView recur(const LayerWeights& weights, const ConstTensorView& x, const Batch& batch,
                   const LayerState& state);

  // What `layer` is made of, for those who put several caches behind one projection.
  // Projects x [n, dim] for layer `index`, and appends K and V to `kv`, if the cache is its own. Of
  // several streams x becomes what the layer predicts, which `finish` is to get.
  AttentionInputs project(int64_t index, const LayerWeights& weights, const TensorView& x,
                          const Batch& batch, const PagedKv& kv,
                          const std::optional<TensorView>& magnitudes);
  // Appends the same K and V to another cache.
  void append(const AttentionInputs& inputs, const Batch& batch, const PagedKv& kv);
  // Attention of layer `index` over what `kv` holds.   out [n, n_heads, v_head_dim]
  void attend(int64_t index, const AttentionInputs& inputs, const Batch& batch, const PagedKv& kv,
              const TensorView& out);
  // The rest of the layer: adds its output to x [n, dim].   mixed as attend and recur give it;
  // input as of `layer`
  void finish(const LayerWeights& weights, const MixedRows& mixed, const TensorView& x,
              const std::optional<ConstTensorView>& input = {});

  // logits [n_rows, vocab_size] f32 of the rows of x named by `rows` [n_rows] i32.
  void head(const HeadWeights& weights, const TensorView& x, const ConstTensorView& rows,
            const TensorView& logits);

  // From here on, how many rows are sent to each expert is added to `counts` [experts] u64; absent:
  // it is not.
  void count_experts(const std::optional<TensorView>& counts);

  DType activation_dtype() const { return activation_; }
  uint64_t bytes() const;  // of scratch memory

 private:
  TensorView scratch(const Tensor& buffer, int64_t rows, int64_t width) const;
  struct RopeTable {
    Tensor rows;                   // [max_positions, rotary_dim] f32
    std::optional<Tensor> q_rows;  // where Q has other ones
    RopePairs pairs = RopePairs::halves;
  };

  Tensor to_backend(const std::vector<float>& rows, int64_t n_rows) const;
  RopeTable rope_rows(const RopeConfig& rope, int64_t head_dim, int64_t positions) const;
  Entry entry(const std::optional<Norm>& norm, int64_t rows) const;
  ConstTensorView entered(const ConstTensorView& x, const Entry& in, double multiplier);
  void multiply(const TensorView& x, double multiplier);
  void finish_stream(const LayerWeights& weights, const MixedRows& mixed, const TensorView& x);
  void add_attended(const LayerWeights& weights, const ConstTensorView& attended,
                    const TensorView& x);
  void go_around(const LaurelWeights& weights, const ConstTensorView& x, const Entry& in);
  ConstTensorView gated(const LayerWeights& weights, const ConstTensorView& attended,
                        const ConstTensorView& x);
  TensorView hidden(const LayerWeights& weights, const TensorView& x);
  void mix(const LayerWeights& weights, const TensorView& x);
  void mix_beside_dense(const LayerWeights& weights, const TensorView& x);
  TensorView taken_in(const LayerInput& weights, const ConstTensorView& input,
                      const ConstTensorView& x);
  void join(const TensorView& output, const std::optional<Norm>& post_norm, const TensorView& x,
            double multiplier = 1.0);
  void add_output(const Linear& linear, const ConstTensorView& from,
                  const std::optional<Norm>& post_norm, const TensorView& x,
                  double multiplier = 1.0);
  // By the config's rotation `rope`; -1: by nothing.
  RopeAppend rotation(int32_t rope, const AttentionInputs& inputs, const Batch& batch,
                      const PagedKv& kv, const std::optional<TensorView>& magnitudes) const;

  Backend& backend_;
  const ModelConfig& config_;
  DType activation_;
  std::vector<RopeTable> ropes_;          // of config.ropes; empty where no layer has one
  RopeTable no_rope_;                     // a rotation by nothing, at position 0
  Tensor no_positions_;                   // [max_rows] i32: all 0
  Tensor normed_, q_, k_, v_, attended_;  // [max_rows, ...], for the layer with most
  Tensor attn_gate_;                      // [max_rows, n_heads * k_head_dim]
  Tensor gate_, up_;
  // Of layers that keep a state.
  Tensor state_q_, state_k_, state_v_, state_gate_, state_read_;
  Tensor state_step_, state_strength_;  // f32
  std::optional<ExpertsForward> experts_;
  std::optional<LatentForward> latent_;
  std::optional<StreamsForward> streams_;
  Tensor laurel_, laurel_low_;  // [max_rows, dim], [max_rows, laurel_rank]
  Tensor output_;  // [max_rows, dim]: of a block, where one is not added to the stream as it is
  Tensor mixed_;   // [max_rows, dim]: of experts that are beside a dense part
  Tensor down_;    // [max_rows, embed_dim]: on the way to logits, where that is another size
  std::optional<Tensor> score_bias_;  // [n_heads, max_positions] f32
};

}  // namespace fp8kv
