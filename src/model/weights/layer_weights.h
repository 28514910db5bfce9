// What the forward pass has of a layer: its tensors by what they are for.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "core/config.h"

namespace fp8kv {

// Of a layer whose experts are beside its dense part: of what goes into the experts, of what they
// give, and of what the dense part gives.   [dim]
struct NormsBeside {
  Norm experts, experts_post, dense_post;
};

// The feed-forward part of a layer with experts.
struct LayerExperts {
  std::optional<Norm> router_norm;  // [dim]
  Linear router;                    // [count, dim]
  RouterTerms terms;
  std::optional<NormsBeside> beside;
  std::optional<Linear> in, out;  // [inner_dim, dim], [dim, inner_dim]
  // Gate, where there is one, and up [hidden_dim, dim], and down [dim, hidden_dim], of each.
  std::vector<std::array<ConstTensorView, 3>> each;
  ConstTensorView addresses;  // of these, [3, count] u64 on the backend: see ExpertMatrices
  std::vector<std::optional<QuantisedMatrix>> codes;  // see ExpertMatrices
  std::optional<ExpertBiases> biases;
  // The expert that takes every token, where there is one; as `each`.
  std::optional<std::array<Linear, 3>> shared;
  std::optional<Linear> shared_router;  // [1, dim]
};

// What latent attention has beside AttentionWeights::q: see LatentConfig.
struct LatentWeights {
  std::optional<Linear> q_down;     // [q_rank, dim]
  std::optional<Norm> q_down_norm;  // [q_rank]
  Linear latent;                    // [rank, dim]
  Linear k_rope;                    // [rope_dim, dim]
  Norm norm;                        // [rank], of the latent
  ConstTensorView k_up;             // [n_heads, rank, nope_dim]: Q to what the latent is scored by
  ConstTensorView v_up;             // [n_heads, v_dim, rank]
};

// What a layer keeps a state with.
struct StateWeights {
  Linear q, k;                          // [k_width, dim]
  Linear v;                             // [v_width, dim]
  Linear gate;                          // [v_width, dim]: what is read is multiplied by its SiLU
  Linear step;                          // [v_heads, dim]
  std::optional<Linear> strength;       // [v_heads, dim]
  Linear conv_q, conv_k, conv_v;        // [channels, conv_width]: see CausalConv
  ConstTensorView decay, step_bias;     // [v_heads]: see Recurrence
  std::optional<ConstTensorView> skip;  // [v_heads]
  std::optional<Norm> norm;             // [v_dim], or [v_width] of groups: see StateNorm
  Linear out;                           // [dim, v_width]
};

// What of several streams a layer predicts and corrects with: see StreamsConfig.
struct StreamWeights {
  Norm norm;                             // [dim]
  Linear router;                         // [streams, dim]
  Linear predict;                        // [streams * streams, streams]
  Linear correct;                        // [streams, streams]
  std::optional<ConstTensorView> scale;  // [dim]
};

// The way around attention: x + norm(up(down(x))) of rows x that go into it.
struct LaurelWeights {
  Linear down;  // [laurel_rank, dim]
  Linear up;    // [dim, laurel_rank]
  Norm norm;    // [dim]
};

// What takes a layer's own input into the stream: x + norm(out(activation(gate(x)) * input)).
struct LayerInput {
  Linear gate;                    // [layer_input_dim, dim]
  Linear out;                     // [dim, layer_input_dim]
  std::optional<Norm> post_norm;  // [dim]
};

// One layer; of what comes after K and V, nothing where only the part up to them is wanted. The
// views live as long as `storage`, which is empty where someone else owns them.
struct LayerWeights {
  // Of rows on their way into attention and the feed-forward part, and of what these give; see
  // NormPlace for which there are.
  std::optional<Norm> attn_norm, attn_post_norm;  // [dim]
  std::optional<Norm> ffn_norm, ffn_post_norm;    // [dim]
  AttentionWeights attn;  // with latent attention only q, [n_heads * (nope_dim + rope_dim), ..]
  std::optional<LatentWeights> latent;
  std::optional<ConstTensorView> sinks;  // [n_heads]
  std::optional<Linear> attn_gate;       // [n_heads * head_dim, dim]
  std::optional<StateWeights> state;     // in place of attention, or beside it
  Linear o;                              // [dim, n_heads * head_dim]
  std::optional<Linear> gate;  // [hidden_dim, dim]; this and the next two of layers with has_dense
  Linear up;                   // [hidden_dim, dim]
  Linear down;                 // [dim, hidden_dim]
  std::optional<LayerExperts> experts;
  std::optional<LayerInput> input;
  std::optional<StreamWeights> streams;
  std::optional<LaurelWeights> laurel;
  std::optional<float> gate_cut;  // see ModelConfig::gate_cuts; in deviations above the mean
  bool feeds_forward = true;      // else there is nothing of that part
  float scale = 1.0f;             // what the stream is multiplied by at the layer's end
  std::vector<Tensor> storage;
};

// What is not in a layer.
struct HeadWeights {
  std::optional<Norm> norm;     // [dim]
  std::vector<Linear> streams;  // [dim, dim]: of each stream but the first
  std::optional<Linear> down;   // [embed_dim, dim]
  Linear lm_head;               // [vocab_size, embed_dim]; the embedding where they are tied
  std::vector<Tensor> storage;
};

}  // namespace fp8kv
