// The transformer: one layer, written once, for prefill and decode, calibration and inference.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "core/model/config.h"
#include "model/parts/attention_gate.h"
#include "model/parts/attention_inputs.h"
#include "model/parts/feed_forward/dense.h"
#include "model/parts/feed_forward/experts.h"
#include "model/parts/forward_memory.h"
#include "model/parts/latent.h"
#include "model/parts/laurel.h"
#include "model/parts/layer_states.h"
#include "model/parts/rope_tables.h"
#include "model/parts/scores/differential.h"
#include "model/parts/scores/distances.h"
#include "model/parts/shared_row.h"
#include "model/parts/short_convs.h"
#include "model/parts/sparse/indexer.h"
#include "model/parts/state.h"
#include "model/parts/streams/attn_res.h"
#include "model/parts/streams/hyper.h"
#include "model/parts/streams/ngram_forward.h"
#include "model/parts/streams/shared_block.h"
#include "model/parts/streams/shortcut.h"
#include "model/parts/streams/streams.h"
#include "model/weights/weights.h"

namespace fp8kv {

// A step's rows after attention or the recurrence; empty if the layer only feeds forward. `read` is
// scratch of the Forward that made it, valid until its next recurrence.
struct MixedRows {
  std::optional<ConstTensorView> attended = {};  // [n, n_heads, v_head_dim]
  std::optional<ConstTensorView> read = {};      // [n, v_width]; only if the layer keeps a state
};

// A layer takes these beside its weights and rows.
struct LayerStep {
  Batch batch;
  PagedKv kv;  // read, and appended to if the cache is the layer's own
  LayerPart part = LayerPart::whole;
  // Q, K and V are observed as they are cached; see RopeAppend. Absent: they are not.
  std::optional<TensorView> magnitudes = {};
  LayerState state = {};  // of a layer that keeps one; see Batch::states
  // The layer's own, from Embedding, if it has one: see LayerInput, NgramWeights, or RouterTerms.
  std::optional<ConstTensorView> input = {};
  TokenChoice choice = {};  // of a sparse indexer; not for LayerPart::up_to_kv
};

// Scratch memory and the forward pass, for steps of up to `max_rows` rows and positions below
// `max_positions`. Holds no weights.
class Forward {
 public:
  // Throws like check_computable and check_rows.
  Forward(Backend& backend, const ModelConfig& config, int64_t max_rows, int64_t max_positions);

  // Runs layer `index` on x [n, dim], in place. Models with several streams have x
  // [n, streams * dim], here and below.
  void layer(int64_t index, const LayerWeights& weights, const TensorView& x,
             const LayerStep& step);

  // Adds what a layer with n-grams adds to x before its blocks. Callers of the steps of `layer`
  // call this first, in every layer.
  void add_ngrams(const LayerWeights& weights, const TensorView& x, const LayerStep& step);

  // Runs rows x [n, dim] through a layer's state up to its last product. `finish` does that in
  // models with shared blocks. REQUIRES config.recurs_beside of the layer.   [n, v_width]
  TensorView recur(const LayerWeights& weights, const ConstTensorView& x, const Batch& batch,
                   const LayerState& state);

  // The steps of `layer`, for callers that put several caches behind one projection.
  // Projects x [n, dim] for layer `index`, and appends K and V to the step's cache if the cache is
  // the layer's own. With several streams, x becomes the layer's prediction, which `finish` needs.
  // Reads only the step's `batch`, `kv`, `magnitudes` and `state`.
  AttentionInputs project(int64_t index, const LayerWeights& weights, const TensorView& x,
                          const LayerStep& step);
  // Chooses the tokens that the rows of the last `project` see, for AttentionInputs::chosen.
  // Absent: all before them. Call it directly after that `project`, with its other arguments.
  std::optional<ConstTensorView> choose(int64_t index, const LayerWeights& weights,
                                        const AttentionInputs& inputs, const Batch& batch,
                                        const TokenChoice& choice);
  // Appends the same K and V to another cache.
  void append(const AttentionInputs& inputs, const Batch& batch, const PagedKv& kv);
  // Attention of layer `index` over what `kv` holds.   out [n, n_heads, v_head_dim]
  void attend(int64_t index, const AttentionInputs& inputs, const Batch& batch, const PagedKv& kv,
              const TensorView& out);
  // Attention's output [n, n_heads * v_head_dim], times the layer's gate for rows x [n, dim].
  // Scratch of this Forward, valid until its next call. REQUIRES a layer with such a gate.
  ConstTensorView gated(const LayerWeights& weights, const ConstTensorView& attended,
                        const ConstTensorView& x);
  // The rest of the layer: adds its output to x [n, dim].   mixed from attend and recur. Reads only
  // the step's `batch`, `state` and `input`.
  void finish(const LayerWeights& weights, const MixedRows& mixed, const TensorView& x,
              const LayerStep& step);

  // Computes logits [n_rows, vocab_size] f32 of the rows of x that `rows` [n_rows] i32 names.
  void head(const HeadWeights& weights, const TensorView& x, const ConstTensorView& rows,
            const TensorView& logits);

  // From now on, adds the number of rows sent to each expert, identities too, to `counts` [choices]
  // u64. Absent: stops counting.
  void count_experts(const std::optional<TensorView>& counts);

  // From now on, `layer` calls `see` with the rows that it projected, before it attends to them.
  // Empty: stops calling.
  void show_projected(std::function<void(const AttentionInputs& inputs)> see);

  DType activation_dtype() const { return memory_.activation(); }
  uint64_t bytes() const { return memory_.bytes(); }  // scratch memory

 private:
  TensorView view_of(const Tensor& buffer, int64_t rows, int64_t width) const;
  // How a block's output joins the stream.
  struct BlockEnd {
    NormPlace place;
    const std::optional<Norm>& norm;  // of the output, or with NormPlace::carried of the stream
    double multiplier = 1.0;
    std::optional<OutputConv> conv = {};
    double stream_factor = 1.0;              // with NormPlace::carried
    const ColumnFactors* factors = nullptr;  // multiply the output before its norm
    const ResidualGate* gate = nullptr;
  };
  static BlockEnd attn_end(const LayerWeights& weights, double multiplier, double stream_factor);
  InputNorm attn_input(const LayerWeights& weights, int64_t rows) const;
  InputNorm ffn_input(const LayerWeights& weights, int64_t rows) const;
  ConstTensorView entered(const ConstTensorView& x, const InputNorm& in, double multiplier);
  void multiply(const TensorView& x, double multiplier);
  void finish_stream(const LayerWeights& weights, const MixedRows& mixed, const TensorView& x,
                     const LayerStep& step);
  void finish_hyper(const LayerWeights& weights, const MixedRows& mixed, const TensorView& rows,
                    const LayerStep& step);
  void finish_attn_res(const LayerWeights& weights, const MixedRows& mixed, const TensorView& rows,
                       const LayerStep& step);
  TensorView made_output(const LayerWeights& weights, const MixedRows& mixed,
                         const ConstTensorView& x);
  void finish_shortcut(const LayerWeights& weights, const MixedRows& mixed, const TensorView& rows,
                       const LayerStep& step);
  void finish_block(const LayerWeights& weights, const MixedRows& mixed, const TensorView& rows,
                    const LayerStep& step);
  ConstTensorView heads_output(const LayerWeights& weights, const ConstTensorView& attended,
                               const ConstTensorView& x);
  ConstTensorView normed_heads(const Norm& norm, const ConstTensorView& attended);
  void add_attended(const LayerWeights& weights, const ConstTensorView& attended,
                    const TensorView& x, const LayerStep& step);
  TensorView hidden(const LayerWeights& weights, const TensorView& x);
  TensorView mix(const LayerWeights& weights, const TensorView& x,
                 const std::optional<ConstTensorView>& given = {});
  void mix_beside_dense(const LayerWeights& weights, const TensorView& x);
  TensorView layer_input_term(const LayerInput& weights, const ConstTensorView& input,
                              const ConstTensorView& x);
  TensorView product(const Linear& linear, const ConstTensorView& from);
  void join(const TensorView& output, const BlockEnd& end, const TensorView& x);
  void add_output(const Linear& linear, const ConstTensorView& from, const BlockEnd& end,
                  const TensorView& x);

  Backend& backend_;
  const ModelConfig& config_;
  ForwardMemory memory_;
  RopeTables ropes_;
  Tensor normed_, q_, k_, v_, attended_;  // [max_rows, ...], sized for the largest layer
  std::function<void(const AttentionInputs&)> see_projected_;
  std::optional<StateForward> state_;
  std::optional<DenseForward> dense_;
  std::optional<ExpertsForward> experts_;
  std::optional<LatentForward> latent_;
  std::optional<SharedRowForward> shared_row_;
  std::optional<IndexerForward> indexer_;
  std::optional<StreamsForward> streams_;
  std::optional<HyperForward> hyper_;
  std::optional<AttnResForward> attn_res_;
  std::optional<NgramForward> ngrams_;
  std::optional<ShortcutForward> shortcut_;
  std::optional<SharedBlockForward> shared_block_;
  std::optional<LaurelForward> laurel_;
  std::optional<AttentionGateForward> attention_gate_;
  std::optional<DistanceForward> distances_;
  std::optional<DifferentialForward> differential_;
  Tensor output_;           // [max_rows, dim]: of a block that is not added to the stream unchanged
  Tensor layer_gate_;       // [max_rows, layer_input_dim]: see LayerInput
  Tensor attended_normed_;  // like attended_; with BlockConfig::attended_norm
  Tensor mixed_;            // [max_rows, dim]: output of experts beside a dense part or attention
  Tensor down_;             // [max_rows, embed_dim]: before the logits, if embed_dim is not dim
  std::optional<Tensor> score_bias_;  // [n_heads, max_positions] f32
};

}  // namespace fp8kv
