// A layer's tensors as the forward pass uses them, by purpose.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "core/model/config.h"

namespace fp8kv {

// Norms of a layer with experts beside its dense part: of the experts' input, of their output, and
// of the dense part's output.   [dim]
struct NormsBeside {
  Norm experts, experts_post, dense_post;
};

// Weighs the columns of the stream and of a block's output where the two meet. For a file's number
// g, with b = sigmoid(g / BlockConfig::gate_temperature): the output by b, and the stream by the
// root of 1 - b^2, or of kLeastKept if that is more.
struct ResidualGate {
  ColumnFactors stream, output;  // [dim] f32
};
inline constexpr double kLeastKept = 1e-3;

// The feed-forward part of a layer with experts.
struct LayerExperts {
  std::optional<Norm> router_norm;  // [dim]
  Linear router;                    // [count, dim]
  RouterTerms terms;
  std::optional<NormsBeside> beside;
  std::optional<Linear> in, out;  // [inner_dim, dim], [dim, inner_dim]
  std::optional<Norm> in_norm;    // [inner_dim]
  // The norm of each expert's output, and the factors before it.   [inner_dim or dim]
  std::optional<Norm> each_norm;
  std::optional<ColumnFactors> each_factors;
  std::optional<Norm> sum_norm;  // [inner_dim]: of the experts' sum
  // Each expert's gate (if there is one) and up [hidden_dim, dim], and down [dim, hidden_dim].
  std::vector<std::array<ConstTensorView, 3>> each;
  ConstTensorView addresses;  // of `each`, [3, count] u64 on the backend: see ExpertMatrices
  std::vector<std::optional<QuantisedMatrix>> codes;  // see ExpertMatrices
  std::optional<ExpertBiases> biases;
  // The expert that takes every token, if there is one; matrices like in `each`.
  std::optional<std::array<Linear, 3>> shared;
  std::optional<Linear> shared_router;  // [1, dim]
  LayerSwiglu swiglu;                   // the layer's
  bool by_table = false;                // see ModelConfig::has_expert_table
};

// Latent attention's weights besides AttentionWeights::q: see LatentConfig.
struct LatentWeights {
  std::optional<Linear> q_down;     // [q_rank, dim]
  std::optional<Norm> q_down_norm;  // [q_rank]
  Linear latent;                    // [rank, dim]
  Linear k_rope;                    // [rope_dim, dim]
  Norm norm;                        // [rank], of the latent
  ConstTensorView k_up;             // [n_heads, rank, nope_dim]: takes Q into the latent's space
  ConstTensorView v_up;             // [n_heads, v_dim, rank]
};

// Weights of a sparse indexer: see IndexerConfig.
struct IndexerWeights {
  Linear q;                     // [n_heads * head_dim, q_rank or dim]
  Linear k;                     // [head_dim, dim]
  std::optional<Norm> q_norm;   // [head_dim]
  Norm norm;                    // [head_dim], of K
  std::optional<Linear> heads;  // [n_heads, dim]: how much each head counts; not with by_kv_head
  // Keys that gates pool: k makes [2 * head_dim, dim], as does this; [block, 2 * head_dim].
  std::optional<Linear> gate;
  std::optional<ConstTensorView> bias;
};

// Weights of pooled rows: see SharedRowConfig.
struct PoolWeights {
  Linear rows, gate;     // [parts * head_dim, dim]
  ConstTensorView bias;  // [block, parts * head_dim]
  Norm norm;             // [head_dim]
};

// Weights of a layer whose row is K and V, besides those of Q and K: see SharedRowConfig.
struct SharedRowWeights {
  Linear q_down;           // [q_rank, dim]
  Norm q_down_norm;        // [q_rank]
  ConstTensorView o_down;  // [o_groups, o_rank, elements of a group]
  std::optional<PoolWeights> pool;
};

// How differential attention subtracts one half of its heads from the other: see
// DifferentialForward.
struct DifferentialWeights {
  float lambda = 0.0f;  // multiplies the second half
  Norm norm;            // [2 * v_head_dim], of the difference: all weights are 1 - first_lambda
};

// Two products in a row, whose result is added to that of a larger matrix.
struct LoraWeights {
  Linear down;  // [rank, in_dim]
  Linear up;    // [out_dim, rank]
};

// Weights of a layer that uses a shared block, beside those of attention and of a feed-forward
// part: see SharedBlockConfig.
struct SharedBlockWeights {
  std::optional<LoraWeights> q, k, v;
  Linear ffn_down;        // [rank, dim]: of gate and up
  Linear gate_up, up_up;  // [hidden_dim, rank]
  Linear out;             // [dim, dim]
};

// Weights of a layer that keeps a state.
struct StateWeights {
  Linear q, k;                                 // [k_width, dim or v_width]
  Linear v;                                    // [v_width, dim]
  Linear gate;                                 // [v_width, dim or rank]: see RecurrenceConfig::gate
  Linear step;                                 // [steps, dim or rank]
  std::optional<Linear> gate_down, step_down;  // [rank, dim or v_width]
  std::optional<Linear> strength;              // [v_heads, dim]
  Linear conv_q, conv_k, conv_v;               // [channels, conv_width]: see CausalConv
  ConstTensorView decay;                       // [v_heads] or [v_width, k_dim]: see Recurrence
  ConstTensorView step_bias;                   // [steps]
  std::optional<ConstTensorView> skip;         // [v_heads or v_width]
  std::optional<Norm> norm;  // [v_dim], or [v_width] for norms of groups: see StateNorm
  // With from_v: of the vector behind the steps [rank], of K and of Q [k_dim]. The last two also
  // with qk_norm.
  std::optional<Norm> step_norm, k_norm, q_norm;
  Linear out;  // [dim, v_width]
};

// Weights by which a layer predicts and corrects several streams: see StreamsConfig.
struct StreamWeights {
  Norm norm;                             // [dim]
  Linear router;                         // [streams, dim]
  Linear predict;                        // [streams * streams, streams]
  Linear correct;                        // [streams, streams]
  std::optional<ConstTensorView> scale;  // [dim]
};

// Weights of a hyper-connection around one block, or of the sum at the end of the model: see
// HyperConfig and HyperRows.
struct HyperWeights {
  Linear product;         // [width, streams * dim]
  ConstTensorView base;   // [width]
  ConstTensorView scale;  // [1 or 2]
  // With a rank: these in place of base and scale, and in `product` [streams, streams * dim] what
  // makes the weights of what is written.
  std::optional<Norm> norm;        // [streams, dim]
  std::optional<Linear> down, up;  // [rank, streams * dim], [streams * dim, rank]
};

// Weights of attention residuals before one block, or at the end of the model: see AttnResForward.
struct AttnResWeights {
  Norm norm;            // [dim]
  Linear product;       // [1, dim]
  int64_t sources = 1;  // the stream and the blocks before it
};

// Weights by which a layer adds the rows of n-grams to all streams: see NgramForward.
struct NgramWeights {
  Linear key;                            // [streams * dim, NgramConfig::dim]
  Linear value;                          // [dim, NgramConfig::dim]
  Norm key_norm, query_norm, conv_norm;  // [streams, dim]
  Linear conv;                           // [streams * dim, 1, conv_width]
};

// Weights of a layer's biases of distances: see DistanceConfig.
struct DistanceWeights {
  Linear states;         // [n_heads * dim, dim of the stream]
  ConstTensorView bank;  // [dim, extent]
};

// Weights of a layer's short convolutions: see ShortConvsConfig.   [channels, 1, width]
struct ShortConvWeights {
  ConstTensorView k, v, attn, ffn;
};

// LAuReL, the way around attention: x + norm(up(down(x))), for rows x that enter attention.
struct LaurelWeights {
  Linear down;  // [laurel_rank, dim]
  Linear up;    // [dim, laurel_rank]
  Norm norm;    // [dim]
};

// Takes a layer's own input into the stream: x + norm(out(activation(gate(x)) * input)).
struct LayerInput {
  Linear gate;                    // [layer_input_dim, dim]
  Linear out;                     // [dim, layer_input_dim]
  std::optional<Norm> post_norm;  // [dim]
};

// One layer. LayerPart::up_to_kv leaves everything after K and V empty. The views live as long as
// `storage`, which is empty if someone else owns them.
struct LayerWeights {
  NormPlace norm_place = NormPlace::before;  // see ModelConfig::norm_place
  NormPlace ffn_norm_place = NormPlace::before;
  // Norms of the inputs and outputs of attention and of the feed-forward part; NormPlace says which
  // exist.
  std::optional<Norm> attn_norm, attn_post_norm;  // [dim]
  std::optional<Norm> ffn_norm, ffn_post_norm;    // [dim]
  std::optional<ColumnFactors> ffn_post_factors;  // multiply rows before ffn_post_norm
  std::optional<ResidualGate> attn_residual_gate, ffn_residual_gate;
  AttentionWeights attn;  // with latent attention only q, [n_heads * (nope_dim + rope_dim), ..]
  std::optional<LatentWeights> latent;
  std::optional<SharedRowWeights> shared_row;
  std::optional<IndexerWeights> indexer;  // absent too where the choice before is reused
  std::optional<ConstTensorView> sinks;   // [n_heads]
  std::optional<DifferentialWeights> differential;
  std::optional<Norm> attended_norm;  // [v_head_dim]: of each head of attention's output
  std::optional<Linear> attn_gate;    // [n_heads * head_dim, dim]
  std::optional<SharedBlockWeights> shared_block;
  std::optional<Norm> state_in_norm;  // [dim]; only beside shared blocks
  std::optional<StateWeights> state;  // in place of attention, or beside it
  Linear o;                           // [dim, n_heads * head_dim]
  std::optional<Linear> gate;  // [hidden_dim, dim]; this and the next two only with has_dense
  Linear up;                   // [hidden_dim, dim]
  Linear down;                 // [dim, hidden_dim]
  std::optional<LayerExperts> experts;
  std::optional<LayerInput> input;
  std::optional<StreamWeights> streams;
  std::optional<HyperWeights> attn_hyper, ffn_hyper;
  std::optional<AttnResWeights> attn_res, ffn_res;
  bool starts_block = false;  // of attention residuals
  std::optional<NgramWeights> ngrams;
  std::optional<LaurelWeights> laurel;
  std::optional<DistanceWeights> distance;
  std::optional<ShortConvWeights> short_convs;
  std::optional<float> gate_cut;  // see ModelConfig::gate_cuts; in deviations above the mean
  std::optional<Xielu> xielu;     // see BlockConfig::xielu
  LayerSwiglu swiglu;             // see ModelConfig::swiglus
  bool feeds_forward = true;      // false: the layer has no feed-forward part
  bool ends_shortcut = false;     // see ModelConfig::ends_shortcut
  float scale = 1.0f;             // multiplies the stream at the layer's end
  float ffn_scale = 1.0f;         // multiplies the feed-forward part's output
  std::vector<Tensor> storage;
};

// Weights that belong to no layer.
struct HeadWeights {
  std::optional<Norm> norm;     // [dim]
  std::vector<Linear> streams;  // [dim, dim]: of each stream but the first
  std::optional<HyperWeights> hyper;
  std::optional<AttnResWeights> attn_res;
  std::optional<Linear> down;  // [embed_dim, dim]
  Linear lm_head;              // [vocab_size, embed_dim]; the embedding if they are tied
  std::vector<Tensor> storage;
};

}  // namespace fp8kv
