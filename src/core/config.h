// A model that can be computed: its description, and what the forward pass needs besides.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/block.h"
#include "core/dtype.h"
#include "core/experts.h"
#include "core/model_description.h"
#include "core/recurrence.h"
#include "core/streams.h"
#include "core/tensor_row.h"

namespace fp8kv {

enum class RopeScaling { none, linear, llama3, yarn, longrope };

struct RopeConfig {
  double theta = 10000.0;
  RopeScaling scaling = RopeScaling::none;
  double factor = 1.0;             // linear, llama3, yarn, longrope
  double low_freq_factor = 1.0;    // llama3
  double high_freq_factor = 4.0;   // llama3
  double original_context = 8192;  // llama3, yarn, longrope: original_max_position_embeddings
  double beta_fast = 32.0;         // yarn: pairs that turn more often in that context are kept
  double beta_slow = 1.0;          // yarn: those that turn less often are slowed by `factor`
  bool truncate = true;            // yarn: the pairs where the two begin are whole numbers
  double attention_factor = 1.0;   // yarn, longrope: multiplies Q and K as they are rotated
  int64_t rotary_dim = 0;          // elements of a head that are rotated, its first; 0: all
  RopePairs pairs = RopePairs::halves;
  // longrope, [rotary_dim / 2]: what slows each pair where positions stay within the original
  // context, and where they go beyond.
  std::vector<double> short_factors = {};
  std::vector<double> long_factors = {};
  // Q is multiplied by 1 + q_growth * ln(1 + floor((position + q_growth_from) / original_context)):
  // Ministral 3.
  double q_growth = 0.0;
  double q_growth_from = 0.0;
  int64_t turning_pairs = 0;  // the other pairs stay as they are; 0: all turn
  bool base_grows = false;    // dynamic: theta is another in prompts beyond the context
  bool turns = true;          // false: nothing is rotated, and Q grows all the same: Llama 4
  double k_factor = 1.0;      // multiplies K as it is rotated; REQUIRES that all of a head is
  bool operator==(const RopeConfig&) const = default;
};

// Attention through a latent vector (MLA). For each token a layer caches one vector that all heads
// share: what is rotated, `rope_dim` elements, then the normed latent, `rank` elements.
struct LatentConfig {
  int64_t rank = 0;
  int64_t rope_dim = 0;
  int64_t nope_dim = 0;    // elements of a head of Q that are not rotated
  int64_t v_dim = 0;       // of a head's V, which is made of the latent
  int64_t q_rank = 0;      // of the vector that Q is made of; 0: Q is made of the layer's input
  double norm_eps = 1e-6;  // of the norms of the latent and of that vector
  bool operator==(const LatentConfig&) const = default;
};

// All of it is set, and no layer is Mixing::unknown.
struct ModelConfig : ModelDescription {
  DType dtype = DType::f16;  // of the weights: f32, f16 or bf16
  // Which key of config.json says max_seq_len, and why no more is computed if that is not plain.
  std::string_view context_key = "max_position_embeddings";
  int64_t hidden_dim = 0;                 // of layers without experts
  std::vector<int64_t> hidden_dims = {};  // of each layer, where they differ; else empty
  int64_t vocab_size = 0;
  int64_t embed_dim = 0;  // of the embedding's rows, which a product makes `dim` long; 0: they are
  // Rows of a table of which row `position + position_offset` is added to the embedding; 0: none.
  int64_t position_rows = 0;
  int64_t position_offset = 0;
  // Each layer has an input of so many numbers beside the stream: a row of its own for the token,
  // added to a product of the embedding. 0: it has none.
  int64_t layer_input_dim = 0;
  int64_t layer_vocab_size = 0;          // tokens that have such rows
  double layer_token_multiplier = 1.0;   // of these rows
  std::optional<StreamsConfig> streams;  // of `dim` elements each
  // Attention has a way around it that is a product of this rank:
  // x = (x + attention(x) + around(x)) / sqrt(2). 0: it has none.
  int64_t laurel_rank = 0;
  // The share of each layer's gate that is cut off below, where its numbers are distributed
  // normally; the others keep how far above the cut they are. 0: nothing is. Empty: in no layer.
  std::vector<double> gate_cuts = {};
  double norm_eps = 1e-5;
  std::vector<RopeConfig> ropes;     // the rotations that layers use, each once
  std::vector<int32_t> layer_ropes;  // [n_layers]: which of them; -1: the layer rotates nothing
  BlockConfig block;
  std::optional<LatentConfig> latent;  // of all layers
  std::optional<ExpertsConfig>
      experts;  // of layers whose feed-forward part is FeedForward::experts
  std::optional<RecurrenceConfig> recurrence;  // of layers that keep a state
  bool qkv_bias = false;
  bool o_bias = false;
  bool mlp_bias = false;
  bool tied_embeddings = false;
  std::vector<int32_t> eos_ids;
  int32_t bos_id = -1;                 // -1: none given
  std::span<const TensorRow> tensors;  // empty where the architecture is not one of ours
  // What the tensors' "model." and "lm_head" are inside of a model with more parts.
  std::string model_prefix = "model.";  // "language_model.model."
  std::string lm_head = "lm_head";      // "language_model.lm_head"
  // How quantised weights are stored: "fp8, a scale for each row"; "" where all are plain numbers.
  std::string stored_as = {};
  // Keys of config.json that nobody here knows: they may change what the model computes.
  std::vector<std::string> unknown_keys = {};

  int64_t hidden_dim_of(int64_t index) const {
    return hidden_dims.empty() ? hidden_dim : hidden_dims[static_cast<size_t>(index)];
  }

  bool has_experts(int64_t index) const {
    return layer(index).feed_forward == FeedForward::experts;
  }
  bool has_dense(int64_t index) const {
    return has_experts(index) ? experts->beside_dense
                              : layer(index).feed_forward != FeedForward::none;
  }

  // Of a row of what goes from layer to layer.
  int64_t stream_dim() const { return streams ? streams->count * dim : dim; }

  // The size of the heads that a rotation of `ropes` turns; 0: no layer uses it.
  int64_t rope_head_dim(int32_t rope) const {
    for (size_t i = 0; i < layers.size(); ++i) {
      if (layer_ropes[i] == rope && layers[i].k_head_dim > 0) return layers[i].k_head_dim;
    }
    return 0;
  }

  // Whether a layer rotates Q and K.
  bool turns(int64_t index) const {
    const int32_t rope = layer_ropes[static_cast<size_t>(index)];
    return rope >= 0 && ropes[static_cast<size_t>(rope)].turns;
  }
};

}  // namespace fp8kv
