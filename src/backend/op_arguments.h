// The arguments of a backend's ops: views of memory and numbers. All memory is the backend's.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "core/cache/paged.h"
#include "core/model/block.h"
#include "core/model/experts.h"
#include "core/model/quantised_matrix.h"
#include "core/model/recurrence.h"
#include "core/numbers/histogram.h"
#include "core/numbers/tensor.h"

namespace fp8kv {

// The step size that ops assume. Ops compute few rows in another way than many, and the two ways
// round differently. A token's bits could then depend on what else is in its step. Callers that
// must avoid this give every step one size with Backend::compute_as. 0: the step's own size, which
// is fastest.
struct StepSize {
  int64_t rows = 0;
  int64_t rows_per_sequence = 0;
};

// The rows of a step: `n` tokens of one or more sequences, the rows of a sequence adjacent.
// All on the backend.
struct Batch {
  ConstTensorView positions;    // [n] i32: position in the sequence, from 0
  ConstTensorView slots;        // [n] i32: where the token's K and V go, page * page_size + offset
  ConstTensorView indptr;       // [n_seqs + 1] i32: rows of sequence s are indptr[s]..indptr[s+1]
  ConstTensorView page_table;   // [n_seqs, max_pages] i32
  ConstTensorView context_len;  // [n_seqs] i32: tokens in the cache once these rows are appended;
                                // the last row of a sequence is at position context_len - 1
  // [n_seqs] i32: the slot of the sequence's states, in layers that keep states. -1: no slot, which
  // REQUIRES that the sequence's first row is at position 0. No data: no sequence has a slot.
  ConstTensorView states = {};
  // [n_seqs, max_pages] i32: twice the numbers of page_table, for a cache whose pages count as two
  // with half of the heads each. No data: nobody asked for them.
  ConstTensorView half_pages = {};
};

// In every row, the elements of each head from element `first` on.
struct HeadColumns {
  TensorView rows;  // [n, n_heads, ..], activation dtype
  int64_t first = 0;
};
struct ConstHeadColumns {
  ConstTensorView rows;  // [n, n_heads, ..], activation dtype
  int64_t first = 0;
};

struct Linear {
  ConstTensorView weight;               // [out_dim, in_dim], model dtype
  std::optional<ConstTensorView> bias;  // [out_dim], model dtype
  // A matrix that Backend::in_place returned: stands for `weight`, whose data is then null.
  std::optional<QuantisedMatrix> codes = {};
};

// One of several products that share an input: out = x * weight^T + bias. With `accumulate`, out +=
// ...: so a block adds its result to the residual stream.
struct Projection {
  ConstTensorView weight;               // [out_dim, in_dim], model dtype
  std::optional<ConstTensorView> bias;  // [out_dim], model dtype
  TensorView out;                       // [n, out_dim], activation dtype
  bool accumulate = false;
  std::optional<QuantisedMatrix> codes = {};  // see Linear::codes
};

// `rms` divides a row by its root mean square. `layer` brings it to mean 0 and deviation 1. Then
// the row is multiplied by the weight, and the bias is added.
struct Norm {
  NormKind kind = NormKind::rms;
  float eps = 0.0f;            // added to the mean square
  float weight_offset = 0.0f;  // added to every weight
  // [dim], or [k, dim]: row i is multiplied by weights i % k. Model dtype or f32.
  ConstTensorView weight = {};
  std::optional<ConstTensorView> bias = {};  // [dim], the weight's dtype; `layer` only
};

// Column i is multiplied by weight[i] + offset.
struct ColumnFactors {
  ConstTensorView weight = {};  // [dim], model dtype or f32
  float offset = 0.0f;
};

// How rows enter products: normalised, or unchanged.
struct InputNorm {
  std::optional<Norm> norm;
  TensorView scratch;  // [n, dim], activation dtype: memory to work in, unspecified afterwards
};

struct QkNorms {
  // Per head: [head_dim], or [n_heads, head_dim] and [n_kv_heads, ..] if each head has weights of
  // its own. With `whole`: [n_heads * head_dim] and [n_kv_heads * ..].
  Norm q, k;
  bool whole = false;          // all heads of a row are normalised together; else each by itself
  std::optional<Norm> v = {};  // [head_dim], of every head of V
};

struct AttentionWeights {
  Linear q;     // [n_heads * head_dim, dim]
  Linear k, v;  // [n_kv_heads * head_dim, dim]; unused where K and V have no heads
  std::optional<QkNorms> norms = {};
};

// The first half of a feed-forward block. With a gate, gate.out gets activation(gate) * up, and
// up.out is unspecified. Without a gate, up.out gets activation(up).
struct HiddenProducts {
  std::optional<Projection> gate;
  Projection up;
  Activation activation = Activation::silu;
};

// If K and V have no heads, the layer reads another layer's cache: only Q is rotated, and nothing
// is appended or observed.
struct RopeAppend {
  TensorView q;  // [n, n_heads, head_dim], activation dtype; rotated in place
  // If V is a part of K (PagedKv::v_in_k), `k` has only the elements that V does not have.
  TensorView k;  // [n, n_kv_heads, head_dim], activation dtype; rotated in place
  TensorView v;  // [n, n_kv_heads, v_dim], activation dtype
  // [max_positions, rotary_dim] f32: cosines, then sines, of rotary_dim / 2 angles. RoPE rotates
  // the first rotary_dim elements of a head, in `pairs`; the others stay unchanged.
  ConstTensorView rope;
  Batch batch;  // positions and slots are used
  PagedKv kv;
  DType round_to;  // K (after RoPE), V and Q (after RoPE) are rounded once to this dtype
                   // before anything sees them: the model's dtype, as in every runtime
  // [3, n_kv_heads, kMagnitudeWords] u64: statistics of the rounded Q, K and V, accumulated; see
  // core/numbers/histogram.h. A query head counts for the KV head that it reads. Absent: nothing is
  // observed.
  std::optional<TensorView> magnitudes;
  RopePairs pairs = RopePairs::halves;
  std::optional<ConstTensorView> q_rope = {};  // Q's own table, if it differs from K's; same shape
};

// Returns the products that compute Q, K and V into `args`; only Q's if K and V have no heads.
std::vector<Projection> projections_of(const AttentionWeights& weights, const RopeAppend& args);

// Elements between neighbours in a column (`row`) and in a row (`column`) of a matrix.
struct Steps {
  int64_t row = 0;
  int64_t column = 1;
};

// How the next token of each row is drawn. top_k keeps the likeliest tokens (0: all); of these,
// top_p keeps the likeliest that make up its share. Among equals the lower id comes first. The draw
// follows softmax(logits / temperature); temperature 0 takes the likeliest token. All on the
// backend.
struct Sampling {
  ConstTensorView temperature;  // [n] f32, >= 0
  ConstTensorView top_k;        // [n] i32, >= 0
  ConstTensorView top_p;        // [n] f32, in (0, 1]
  ConstTensorView seed;         // [n] u64
  ConstTensorView position;     // [n] i32: with the seed, all that chance depends on
};

// A router's numbers for each expert, identities too; [choices], any compute dtype.
struct RouterTerms {
  // Added to the scores while experts are chosen: to sigmoids, or to the softmax over all experts.
  std::optional<ConstTensorView> choice_bias = {};
  std::optional<ConstTensorView> factors = {};  // multiplies the weight of the chosen at the end
  // [n, per_token] i32, in rising order: the experts to take. Absent: the router chooses.
  std::optional<ConstTensorView> given = {};
};

// The experts that a router chose for each row.
struct Routed {
  TensorView ids;      // [n, per_token] i32: the experts, in rising order
  TensorView weights;  // [n, per_token] f32: how much each counts
  // [choices] u64: adds how many rows chose each expert. Absent: not counted.
  std::optional<TensorView> counts;
};

// Added to the products of each expert; model dtype. GPUs take biases only together with
// ExpertMatrices::swiglu.
struct ExpertBiases {
  ConstTensorView gate, up;  // [experts, hidden_dim]
  ConstTensorView down;      // [experts, dim]; added before the expert's weight
};

// The matrices of several experts, which lie anywhere on the backend.
struct ExpertMatrices {
  // [3, experts] u64: addresses of each expert's gate and up [hidden_dim, dim] and down
  // [dim, hidden_dim]. 0 for the gate of experts without one.
  ConstTensorView addresses;
  DType dtype = DType::f32;  // the matrices' dtype, which is the model's
  int64_t hidden_dim = 0;
  Activation activation = Activation::silu;
  bool weigh_input = false;  // weights multiply the experts' inputs, not their outputs
  // [3 * experts], in the order of `addresses`: matrices that Backend::in_place returned. They have
  // no address. Empty: none.
  std::span<const std::optional<QuantisedMatrix>> codes = {};
  std::optional<ExpertBiases> biases = {};
  std::optional<ClampedSwiglu> swiglu = {};  // in place of the activation
  bool gated = true;  // false: no gate, `biases` or `swiglu`: down(activation(up(x)))
  // [experts] u64: raised, like Backend::amax does, to the largest magnitude that each expert's
  // `down` multiplies. Absent: not measured.
  std::optional<TensorView> down_amax = {};
  // Experts behind those of `addresses`, whose ids follow: each gives its weight times the row.
  int64_t identities = 0;
};

// A convolution of each channel over its own last tokens, or over every `dilation`-th of them.
struct CausalConv {
  // [channels, width], model dtype or f32, before() <= kMostConvBefore; the last column is the
  // current token's.
  ConstTensorView weight;
  std::optional<ConstTensorView> bias;  // [channels], model dtype
  TensorView state;         // [slots, before(), channels] f32: the tokens before; see Batch::states
  bool silu = true;         // SiLU follows the convolution
  bool adds_input = false;  // the input is added to the convolution, before SiLU
  int64_t dilation = 1;
  // [n, channels], activation dtype: multiply the convolution's input, and the final output.
  std::optional<ConstTensorView> in_gate = {}, out_gate = {};

  // The number of tokens before a row that it reaches.
  int64_t before() const { return (weight.shape[weight.shape.rank() - 1] - 1) * dilation; }
};

// How rows change the state of their sequence; each head of V has a state. With t = softplus(step +
// step_bias), clamped to [least_step, most_step], a state decays by exp(-exp(a_log) * t). It then
// takes in the row with strength most_strength * sigmoid(strength), or with strength t if
// `strength` is absent. Steps may be given for each row of a state: then each decays by its own.
struct Recurrence {
  StateUpdate update = StateUpdate::delta;  // not none
  ConstTensorView q, k;  // [n, k_heads, k_dim], activation dtype; k_dim <= kMostStateRows
  ConstTensorView v;     // [n, v_heads, v_dim], activation dtype
  // [n, v_heads] f32; or [n, v_heads * k_dim], which REQUIRES StateUpdate::delta and v_heads ==
  // k_heads; or with by_element [n, v_heads * v_dim].
  ConstTensorView step;
  std::optional<ConstTensorView> strength;  // [n, v_heads] f32
  float most_strength = 1.0f;
  ConstTensorView a_log;      // [v_heads], any compute dtype
  ConstTensorView step_bias;  // one for each step of a row, any compute dtype
  float least_step = 0.0f;
  float most_step = std::numeric_limits<float>::infinity();
  // Below 0, the logarithm of a decay is this times sigmoid(exp(a_log) * (step + step_bias)), and
  // there is no t: Ling 3. REQUIRES a step for each row, and a strength.
  float least_log_decay = 0.0f;
  // [v_heads], any compute dtype: the output gets V times this added. Absent: nothing is added.
  std::optional<ConstTensorView> skip = {};
  // Scales Q and K to length 1, with kUnitEps added to the squared length. Then divides Q by the
  // root of k_dim.
  bool unit = false;
  // Mamba-1: each column of a state has a step, and each element a rate: a_log [v_heads * v_dim,
  // k_dim], skip [v_heads * v_dim]. REQUIRES StateUpdate::add, no strength, k_dim <=
  // kMostRatedRows, and not `unit`.
  bool by_element = false;
  TensorView state;  // [slots, state_elements] f32; see core/model/recurrence.h and Batch::states
};

// Pools the tokens of each whole block to one row: see SharedRowConfig.
struct TokenPools {
  ConstTensorView rows;   // [n, parts * dim], activation dtype, like the next
  ConstTensorView gates;  // [n, parts * dim]
  ConstTensorView bias;   // [block, parts * dim], model dtype or f32
  int64_t block = 1;
  int64_t parts = 1;  // 2: blocks overlap
  // [slots, kept(), 2 * parts * dim] f32: rows and gates of the last tokens, the token at position
  // p in place p % kept(); see Batch::states
  TensorView state;

  int64_t kept() const { return block * parts; }
};

// Rows of several streams, and what their shares are made from: see HyperConfig. `width` is count
// for shares of what is read alone, 2 * count, or (2 + count) * count with shares that mix.
struct HyperRows {
  ConstTensorView x;         // [n, count * dim] activation dtype
  ConstTensorView products;  // [n, width] f32: of x; divided by x's RMS here
  ConstTensorView scale;     // [1 to 3], of any type like the next: multiplies each kind of shares
  ConstTensorView base;      // [width]: added to that
  float norm_eps = 0.0f;     // added to the mean square of x
};

// Shares as mix_streams takes them.   [n, count] f32
struct HyperShares {
  TensorView read;
  std::optional<TensorView> write = {};
  std::optional<TensorView> mix = {};  // [n, count * count] f32
};

// A bias of scores for the distance of a token before a row: see DistanceConfig.
struct DistanceBias {
  ConstTensorView states;  // [n, n_heads, dim], activation dtype
  ConstTensorView bank;    // [dim, extent], model dtype or f32
  // [max_positions] f32: multiplies the bias of a row at a position. Absent: nothing does.
  std::optional<ConstTensorView> growth = {};

  int64_t dim() const { return bank.shape[0]; }
  int64_t extent() const { return bank.shape[1]; }
};

struct AttentionOptions {
  float scale = 1.0f;  // multiplies q . k
  int64_t window = 0;  // a row sees the last `window` positions, itself included; 0: all
  int64_t chunk = 0;   // a row sees positions from the last multiple of `chunk` on; 0: all
  float cap = 0.0f;    // scores become cap * tanh(score / cap); 0: they are left alone
  // [n_heads, positions] f32: added to the scaled score of the token at a position. REQUIRES more
  // positions than the cache has tokens. Absent: nothing is added.
  std::optional<ConstTensorView> bias = {};
  // Added to the scaled score, like `bias`. REQUIRES no `bias` and no chosen tokens.
  std::optional<DistanceBias> distances = {};
  // [n_heads], model dtype or f32: attention sinks. A sink is the score of one more token, which
  // every query of the head sees and whose value is 0. Absent: no sinks.
  std::optional<ConstTensorView> sinks = {};
  // [n, count] i32: the blocks of `chosen_block` tokens that a row sees, rising; the last one has
  // the row itself unless a block is one token. A row that sees fewer has -1 behind them. For each
  // KV head: [n, n_kv_heads, count]. REQUIRES no window, chunk or bias. Absent: every token before
  // the row, and the row itself.
  std::optional<ConstTensorView> chosen = {};
  int64_t chosen_block = 1;
  // A row that ends a block may not see it, and its list then has count - 1 blocks: those of
  // TokenScores::pooled.
  bool chosen_pooled = false;
  // V has no values of tokens. Instead, the last token of each whole block of `pool` tokens has a
  // pooled row there. K is key and value of a token, and a pooled row of a block. Rows see tokens
  // by the window, and the pooled rows of all blocks that have ended, or of those among `chosen`.
  // REQUIRES one KV head, and no chunk, cap, bias or distances. 0: V has values of tokens.
  int64_t pool = 0;
  // RopeAppend::round_to of these tokens: Q and the cache hold only numbers that this dtype has.
  DType rounded_to = DType::f32;
};

// Keys that an indexer stores. The last token of each block stores the block's key in place of its
// own: the mean of the block's keys, normed, then rotated like the block's first token.
struct PooledAppend {
  ConstTensorView k;     // [n, head_dim], activation dtype; rounded to `round_to` first
  int64_t block = 1;     // tokens of a block
  Norm norm;             // NormKind::rms, [head_dim]
  ConstTensorView rope;  // see RopeAppend::rope; rotates halves
  Batch batch;
  PagedKv keys;  // one head, in elements; only K is stored
  DType round_to;
};

// Inputs of the choice that a sparse indexer makes.
struct TokenScores {
  ConstTensorView q;  // [n, n_heads, head_dim], activation dtype, rotated
  // [n, n_heads] f32: all heads choose together. Absent: each chooses by itself.
  std::optional<ConstTensorView> weights = {};
  PagedKv keys;        // one head, in elements; only K is read
  float scale = 1.0f;  // multiplies q . k
  int64_t block = 1;   // tokens that are chosen together; REQUIRES 1 with weights, or `pooled`
  // All heads together choose blocks, by the key of a block's last token, which PooledAppend
  // stores. The row's own block is chosen too, at the end of its list, unless the row ends it.
  // REQUIRES weights.
  bool pooled = false;
  int64_t local_blocks = 0;  // a row's last blocks, its own among them, which are always chosen
  // [any, blocks] f32, or [any, n_heads * blocks] without weights: memory to work in; more rows are
  // faster
  TensorView scores;
};

enum class WeightUse { linear, experts };  // the op that a matrix is for

}  // namespace fp8kv
