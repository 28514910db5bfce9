// A model that can be computed: its description, and whatever else the forward pass needs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/block.h"
#include "core/model/experts.h"
#include "core/model/model_description.h"
#include "core/model/ngrams.h"
#include "core/model/recurrence.h"
#include "core/model/streams.h"
#include "core/model/tensor_row.h"
#include "core/numbers/dtype.h"

namespace fp8kv {

enum class RopeScaling { none, linear, llama3, yarn, longrope };

struct RopeConfig {
  double theta = 10000.0;
  RopeScaling scaling = RopeScaling::none;
  double factor = 1.0;             // linear, llama3, yarn, longrope
  double low_freq_factor = 1.0;    // llama3
  double high_freq_factor = 4.0;   // llama3
  double original_context = 8192;  // llama3, yarn, longrope: original_max_position_embeddings
  double beta_fast = 32.0;  // yarn: pairs that turn more often than this in that context are kept
  double beta_slow = 1.0;   // yarn: pairs that turn less often than this are slowed by `factor`
  bool truncate = true;     // yarn: the two bounds are rounded to whole pairs
  double attention_factor = 1.0;  // yarn, longrope: multiplies Q and K during the rotation
  int64_t rotary_dim = 0;         // the first elements of a head, which rotate; 0: all
  RopePairs pairs = RopePairs::halves;
  // longrope, [rotary_dim / 2]: the factor that slows each pair, for positions within the original
  // context and for positions beyond it.
  std::vector<double> short_factors = {};
  std::vector<double> long_factors = {};
  // Q is multiplied by 1 + q_growth * ln(1 + floor((position + q_growth_from) / original_context)):
  // Ministral 3.
  double q_growth = 0.0;
  double q_growth_from = 0.0;
  int64_t turning_pairs = 0;  // pairs that rotate; the others stay as they are; 0: all rotate
  bool base_grows = false;    // dynamic: prompts beyond the context use another theta
  // Q is multiplied by 1 + q_growth * ln(max(1, (position + 1) / original_context)): Inkling.
  bool q_grows_evenly = false;
  bool turns = true;       // false: nothing rotates, but Q still grows with its position: Llama 4
  double k_factor = 1.0;   // multiplies K during the rotation; REQUIRES that the whole head rotates
  bool backwards = false;  // pairs turn the other way: NanoChat
  bool operator==(const RopeConfig&) const = default;
};

// Latent attention (MLA). Each layer with attention caches one vector per token, which all heads
// share: `rope_dim` rotated elements, then the `rank` elements of the normed latent.
struct LatentConfig {
  int64_t rank = 0;
  int64_t rope_dim = 0;
  int64_t nope_dim = 0;    // elements of a Q head that do not rotate
  int64_t v_dim = 0;       // size of a V head, which is computed from the latent
  int64_t q_rank = 0;      // size of the vector that Q is made from; 0: Q comes from the input
  double norm_eps = 1e-6;  // for the norms of the latent and of Q's vector
  // Multiply Q's vector and the latent behind their norms: LongCat. Not with an indexer.
  double q_factor = 1.0;
  double latent_factor = 1.0;
  bool operator==(const LatentConfig&) const = default;
};

// The indexer of sparse attention: it scores the tokens before a row by keys of its own, and the
// row attends to the best of them. Its keys have `head_dim` elements, of which the first `rope_dim`
// rotate, or the last.
// DSA: all heads together choose tokens for all of attention. Layers whose index_bytes are 0 reuse
// the choice of the layer before.
// MiniMax M3: each head chooses blocks of tokens for one KV head. Layers whose index_bytes are 0
// see every token.
// Qwen 4 Exp: all heads together choose blocks, each of which has one key: the mean of its tokens'
// keys. A row also sees the block that it is in, unless it ends that block.
// DeepSeek V4: likewise, in layers whose pooled rows overlap. The keys are pooled like these rows,
// and what is chosen are pooled rows. The row's own block does not count until it ends.
// GLM-5 Next: like Qwen 4 Exp, beside latents. A softmax of gates weighs the keys of a block, which
// are normed before. Nothing rotates.
struct IndexerConfig {
  int64_t n_heads = 0;
  int64_t head_dim = 0;
  int64_t rope_dim = 0;
  int64_t top_k = 0;                    // blocks that a row sees
  int64_t block = 1;                    // tokens of a block
  bool pooled = false;                  // by blocks of one key; REQUIRES a block above 1
  bool weighted = false;                // gates weigh the keys of a block; REQUIRES `pooled`
  bool norms_tokens = false;            // GLM-5 Next's way; REQUIRES `weighted`
  int64_t local_blocks = 0;             // the last blocks, which are always among the chosen
  bool by_kv_head = false;              // MiniMax M3's way
  RopePairs pairs = RopePairs::halves;  // of its Q and K
  bool rotates_last = false;            // the last rope_dim elements of a head rotate: HY V4
  double norm_eps = 1e-6;               // for the norm of its keys, in DSA
  bool f32_weights = false;  // the files have the heads' weights in F32 beside weights in 16 bits

  // DSA: keys have a LayerNorm, and a product of the row weighs the heads.
  bool is_dsa() const { return !by_kv_head && !pooled; }
  // Whether a product of the row weighs the heads.
  bool weighs_heads() const { return is_dsa() || weighted; }
  // The products that make a block's key: of its tokens, or of those before, too. REQUIRES weighted
  int64_t parts() const { return norms_tokens ? 1 : 2; }
  // The longest list of chosen blocks: pooled ones may have the row's own behind them.
  int64_t most_blocks() const { return pooled ? top_k + 1 : top_k; }
  int64_t most_tokens() const { return top_k * block + (pooled ? block - 1 : 0); }
  bool operator==(const IndexerConfig&) const = default;
};

// One row of a token is its K and its V, for all heads: DeepSeek V4. Q is made by way of a vector
// of q_rank numbers, and each of its heads is normed without weights; the row has a norm with
// weights. The last rope_dim elements of both rotate, and attention's output is turned back by the
// position of its own row. The output's heads form groups. A matrix for each group makes o_rank
// numbers of it, before the last product. In the cache, what rotates comes first. Layers with
// LayerDescription::pool also see pooled rows. Each element of such a row is a mean over the
// block's tokens, weighted by a softmax of gates. The gates and what they weigh are products of
// attention's input, and a bias for each place in the block is added to the gates. A norm and the
// rotation of the block's first token follow. Where blocks overlap, the products have two parts:
// the first is for the block after the token's own.
struct SharedRowConfig {
  int64_t q_rank = 0;
  int64_t rope_dim = 0;
  int64_t o_groups = 0;
  int64_t o_rank = 0;
  bool operator==(const SharedRowConfig&) const = default;
};

// Each row gives every distance to a token before it a bias of its scores, in each head: Inkling.
// The bias at distance d is the product of the head's `dim` elements of the row with column d of a
// matrix [dim, extent]. Tokens at a distance of `extent` or more have no bias. It grows with the
// row's position where Q does.
struct DistanceConfig {
  int64_t dim = 0;
  int64_t extent = 0;  // in layers with a window: the window
  bool operator==(const DistanceConfig&) const = default;
};

// Convolutions of `width` tokens of what K and V are made from, and of the outputs of attention and
// of the feed-forward part. Each adds its input to its result: Inkling.
struct ShortConvsConfig {
  int64_t width = 0;
  bool operator==(const ShortConvsConfig&) const = default;
};

// Blocks of attention and a feed-forward part that layers share: Zamba 2. Layers that keep a state
// have a cache beside it if they use a block, and they use the blocks in turn. Attention reads the
// stream and the token's embedding, side by side: its input has 2 * dim elements. The feed-forward
// part reads attention's output, normed. A product of the layer's own of what that gives is added
// to the input of the layer's state, and not to the stream. Each use of a block has products of
// `rank` beside some of the block's (LoRA).
struct SharedBlockConfig {
  int64_t blocks = 1;
  int64_t rank = 0;
  bool adapts_attention = false;  // beside Q, K and V too, and not gate and up alone
  bool operator==(const SharedBlockConfig&) const = default;
};

// A drafter (EAGLE-3): one layer that drafts tokens for another model, its target. The layer's
// input is the next token's embedding, normed, beside a normed product of hidden states of the
// target: ModelConfig::dim is 2 * dim.
struct DrafterConfig {
  int64_t dim = 0;         // of its embedding, and of the product
  int64_t target_dim = 0;  // of the target
  // The target's layers whose inputs it reads, ascending; empty: the second, the one in the middle
  // and the third from the end.
  std::vector<int64_t> hidden_layers = {};
  bool operator==(const DrafterConfig&) const = default;
};
// Each drafter reads so many hidden states.
inline constexpr int64_t kDrafterStates = 3;

// All fields are set, and no layer is Mixing::unknown.
struct ModelConfig : ModelDescription {
  DType dtype = DType::f16;  // dtype of the weights: f32, f16 or bf16
  // The config.json key that set max_seq_len, with the reason for the limit unless that is plain.
  std::string_view context_key = "max_position_embeddings";
  int64_t hidden_dim = 0;                 // feed-forward width of layers without experts
  std::vector<int64_t> hidden_dims = {};  // that width for each layer, if layers differ; else empty
  int64_t vocab_size = 0;
  int64_t stored_vocab = 0;  // rows of embedding and lm_head in the files; 0: vocab_size
  int64_t embed_dim = 0;     // width of embedding rows, which a product makes `dim`; 0: `dim`
  // Learned positions: a table of this many rows. Row `position + position_offset` is added to the
  // token's embedding. 0: none.
  int64_t position_rows = 0;
  int64_t position_offset = 0;
  // Per-layer inputs: beside the stream, each layer gets this many numbers per token. They are the
  // token's row in the layer's own table plus a product of the embedding. 0: none.
  int64_t layer_input_dim = 0;
  int64_t layer_vocab_size = 0;          // tokens that have a row in those tables
  double layer_token_multiplier = 1.0;   // multiplies those rows
  std::optional<StreamsConfig> streams;  // each stream has `dim` elements
  std::optional<HyperConfig> hyper;      // likewise; not both
  // Attention residuals: blocks of so many layers. The stream begins anew in each, and what it was
  // before is kept. Attention and the feed-forward part each read a weighted sum of the stream and
  // of what is kept. 0: none. Kimi K3
  int64_t attn_res_block = 0;
  std::optional<NgramConfig> ngrams;  // embeddings of n-grams; REQUIRES hyper
  // LAuReL: a product of this rank runs beside attention, and x becomes (x + attention(x) +
  // around(x)) / sqrt(2). 0: none.
  int64_t laurel_rank = 0;
  // For each layer, the share of its gate values that is cut to 0, if they are normally
  // distributed. Values above the cut keep their distance from it. 0: no cut. Empty: no layer cuts.
  std::vector<double> gate_cuts = {};
  std::vector<LayerSwiglu> swiglus = {};  // for each layer; empty: no layer clamps
  double norm_eps = 1e-5;
  double post_norm_eps = 0.0;        // of norms of a block's output; 0: norm_eps
  std::vector<RopeConfig> ropes;     // every rotation that some layer uses, once
  std::vector<int32_t> layer_ropes;  // [n_layers]: index into `ropes`; -1: no rotation
  BlockConfig block;
  std::optional<LatentConfig> latent;             // latent attention, in all layers with attention
  std::optional<IndexerConfig> indexer;           // absent if it never leaves out a token
  std::optional<SharedRowConfig> shared_row;      // in all layers; absent: in none
  std::optional<DistanceConfig> distances;        // absent: no bias of distances
  std::optional<ShortConvsConfig> short_convs;    // in all layers; absent: in none
  std::optional<ExpertsConfig> experts;           // for layers with FeedForward::experts
  std::optional<RecurrenceConfig> recurrence;     // for layers that keep a state
  std::optional<SharedBlockConfig> shared_block;  // in all layers with attention; absent: in none
  std::optional<DrafterConfig> drafter;  // a drafter; it cannot be computed without its target
  bool qkv_bias = false;
  bool o_bias = false;
  bool mlp_bias = false;
  bool tied_embeddings = false;
  std::vector<int32_t> eos_ids;
  int32_t bos_id = -1;                 // -1: none given
  std::span<const TensorRow> tensors;  // empty for an unsupported architecture
  // For each row of `tensors`, whether the files have its other name. Empty: none.
  std::vector<bool> other_names = {};
  // The prefix that stands for "model." in tensor names, and the name of lm_head. Both are longer
  // if the language model is one part of a larger model.
  std::string model_prefix = "model.";  // "language_model.model."
  std::string lm_head = "lm_head";      // "language_model.lm_head"
  // How quantised weights are stored: "fp8, a scale for each row"; "" if all are plain numbers.
  std::string stored_as = {};
  // Keys of config.json that this program does not know. They may change what the model computes.
  std::vector<std::string> unknown_keys = {};
  bool qk_norm_rotated = false;  // Q and K are normalised after their rotation: HunYuan
  bool bare_norms = false;       // norms of the stream have no weights: OLMo 1
  bool f32_norms = false;        // the files may have norms in F32 beside weights in 16 bits
  bool embed_norm = false;       // the embedding is normed before the first layer: BLOOM
  bool bare_embed_norm = false;  // that norm has no weights: Muse Glimmer

  // Whether a sequence has more than its cache: states of layers, or last tokens of convolutions.
  bool keeps_states() const {
    return recurrence || short_convs || shared_row || (indexer && indexer->weighted);
  }

  // The distances that have a bias in a layer. REQUIRES `distances`.
  int64_t distance_extent(int64_t index) const {
    return window(index) > 0 ? window(index) : distances->extent;
  }

  int64_t hidden_dim_of(int64_t index) const {
    return hidden_dims.empty() ? hidden_dim : hidden_dims[static_cast<size_t>(index)];
  }

  NormPlace norm_place(int64_t index) const {
    const bool before = block.states_normed_before && keeps_state(index);
    return before ? NormPlace::before : block.norm_place;
  }

  // The place of the feed-forward part's norms.
  NormPlace ffn_norm_place(int64_t index) const {
    const bool around = experts && experts->post_norm && has_experts(index);
    return around ? NormPlace::around : norm_place(index);
  }

  LayerSwiglu swiglu_of(int64_t index) const {
    return swiglus.empty() ? LayerSwiglu{} : swiglus[static_cast<size_t>(index)];
  }

  bool has_sinks(int64_t index) const {
    return block.sinks && attends(index) && (!block.window_sinks || window(index) > 0);
  }

  bool has_experts(int64_t index) const {
    return layer(index).feed_forward == FeedForward::experts;
  }
  // Whether a table gives the layer's experts of each token.
  bool has_expert_table(int64_t index) const {
    return has_experts(index) && index < experts->table_layers;
  }
  bool has_dense(int64_t index) const {
    return has_experts(index) ? experts->beside_dense || experts->shortcut
                              : layer(index).feed_forward != FeedForward::none;
  }

  // Whether the output of some layers' experts waits until the end of the next layer.
  bool has_shortcut() const { return experts && experts->shortcut; }

  // Whether the layer adds what the experts of the layer before it gave.
  bool ends_shortcut(int64_t index) const {
    return has_shortcut() && index > 0 && has_experts(index - 1);
  }

  // The width of what Q, K and V are made from.
  int64_t attention_in_dim() const { return shared_block ? 2 * dim : dim; }

  // Whether a layer's state reads what its attention reads. Else it also reads what attention
  // gives.
  bool recurs_beside(int64_t index) const { return keeps_state(index) && !shared_block; }

  // The uses of shared blocks in the layers before this one, and the first layer that uses the
  // block of this one. REQUIRES shared_block, and a layer with attention.
  int64_t block_use(int64_t index) const;
  int64_t block_layer(int64_t index) const;

  // The width of a row that goes from layer to layer: all streams together.
  int64_t stream_dim() const {
    if (has_shortcut() || shared_block) return 2 * dim;
    if (attn_res_block > 0) return (1 + attn_res_blocks(n_layers())) * dim;
    return streams ? streams->count * dim : hyper ? hyper->count * dim : dim;
  }

  // The size of the heads that use a rotation of `ropes`; 0 if no layer uses it. States have a
  // rotation of their own.
  int64_t rope_head_dim(int32_t rope) const {
    if (recurrence && recurrence->rope == rope) return recurrence->k_dim;
    for (size_t i = 0; i < layers.size(); ++i) {
      if (layer_ropes[i] == rope && layers[i].k_head_dim > 0) return layers[i].k_head_dim;
    }
    return 0;
  }

  // The blocks of attention residuals that begin in the first `count` layers.
  int64_t attn_res_blocks(int64_t count) const {
    return (count + attn_res_block - 1) / attn_res_block;
  }

  // Whether a layer rotates Q and K.
  bool turns(int64_t index) const {
    const int32_t rope = layer_ropes[static_cast<size_t>(index)];
    return rope >= 0 && ropes[static_cast<size_t>(rope)].turns;
  }
};

}  // namespace fp8kv
