// The seam between the model and the hardware: memory and a handful of ops. Each op does one thing
// that a transformer needs, as much of it as has one clear meaning.
// Ops take views and numbers; no config, no layer index, no policy. Whatever varies between models
// is data by then: every RoPE scaling is a table, every scale is per KV head.
// A backend may run asynchronously but in order; only `download` waits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/transfers.h"
#include "core/block.h"
#include "core/experts.h"
#include "core/histogram.h"
#include "core/paged.h"
#include "core/quantised_matrix.h"
#include "core/recurrence.h"
#include "core/streams.h"
#include "core/tensor.h"

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
  // [dim], or [k, dim]: row i is multiplied by weights i % k. Model dtype; `rms` also takes f32.
  ConstTensorView weight = {};
  std::optional<ConstTensorView> bias = {};  // [dim], model dtype; `layer` only
};

// How rows enter products: normalised, or unchanged.
struct Entry {
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
  // core/histogram.h. A query head counts for the KV head that it reads. Absent: nothing is
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

// A router's numbers for each expert; [experts], any compute dtype.
struct RouterTerms {
  // Added to the scores while experts are chosen: to sigmoids, or to the softmax over all experts.
  std::optional<ConstTensorView> choice_bias = {};
  std::optional<ConstTensorView> factors = {};  // multiplies the weight of the chosen at the end
};

// The experts that a router chose for each row.
struct Routed {
  TensorView ids;      // [n, per_token] i32: the experts, in rising order
  TensorView weights;  // [n, per_token] f32: how much each counts
  // [experts] u64: adds how many rows chose each expert. Absent: not counted.
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
};

// A convolution of each channel over its own last tokens, then SiLU.
struct CausalConv {
  // [channels, width], model dtype, width <= kMostConvWidth; the last column is the current
  // token's.
  ConstTensorView weight;
  std::optional<ConstTensorView> bias;  // [channels], model dtype
  TensorView state;  // [slots, width - 1, channels] f32: the tokens before; see Batch::states
};

// How rows change the state of their sequence; each head of V has a state. With t = softplus(step +
// step_bias), clamped to [least_step, most_step], a state decays by exp(-exp(a_log) * t). It then
// takes in the row with strength sigmoid(strength), or with strength t if `strength` is absent.
struct Recurrence {
  StateUpdate update = StateUpdate::delta;
  ConstTensorView q, k;  // [n, k_heads, k_dim], activation dtype; k_dim <= kMostStateRows
  ConstTensorView v;     // [n, v_heads, v_dim], activation dtype
  ConstTensorView step;  // [n, v_heads] f32
  std::optional<ConstTensorView> strength;  // [n, v_heads] f32
  ConstTensorView a_log, step_bias;         // [v_heads], any compute dtype
  float least_step = 0.0f;
  float most_step = std::numeric_limits<float>::infinity();
  // [v_heads], any compute dtype: the output gets V times this added. Absent: nothing is added.
  std::optional<ConstTensorView> skip = {};
  // Scales Q and K to length 1, with kUnitEps added to the squared length. Then divides Q by the
  // root of k_dim.
  bool unit = false;
  TensorView state;  // [slots, state_elements] f32; see core/recurrence.h and Batch::states
};

struct AttentionOptions {
  float scale = 1.0f;  // multiplies q . k
  int64_t window = 0;  // a row sees the last `window` positions, itself included; 0: all
  // A row sees positions from the last multiple of `chunk` on; 0: all. GPUs take a slow kernel for
  // it.
  int64_t chunk = 0;
  // For each of the next three options, GPUs take a slow kernel.
  float cap = 0.0f;  // scores become cap * tanh(score / cap); 0: they are left alone
  // [n_heads, positions] f32: added to the scaled score of the token at a position. REQUIRES more
  // positions than the cache has tokens. Absent: nothing is added.
  std::optional<ConstTensorView> bias = {};
  // [n_heads], model dtype: attention sinks. A sink is the score of one more token, which every
  // query of the head sees and whose value is 0. Absent: no sinks.
  std::optional<ConstTensorView> sinks = {};
  // RopeAppend::round_to of these tokens: Q and the cache hold only numbers that this dtype has.
  DType rounded_to = DType::f32;
};

enum class WeightUse { linear, experts };  // the op that a matrix is for

// Memory use of a device that has its own memory.
struct DeviceMemory {
  uint64_t in_use = 0;           // bytes that this backend holds, as asked for
  uint64_t peak = 0;             // the most it has held
  std::optional<uint64_t> free;  // what the device has left; absent if it has no limit
};

// How large a step is, for those who plan memory.
struct StepShape {
  int64_t rows = 0;
  int64_t sequences = 0;
  int64_t max_pages = 0;  // in each row of Batch::page_table
  int32_t page_size = 0;
  int32_t n_heads = 0;
  int32_t n_kv_heads = 0;
  int32_t head_dim = 0;
  bool v_in_k = false;  // see PagedKv
  int64_t dim = 0;      // this and the next four of models with experts
  int64_t experts = 0;
  int64_t expert_hidden_dim = 0;
  int64_t experts_per_token = 0;
  DType activation = DType::f32;
  StepSize computed_as = {};  // see Backend::compute_as
};

// The recorded launches of a step. A replay repeats them with the same pointers, sizes and host
// numbers.
using Recording = std::shared_ptr<void>;

class Backend {
 public:
  virtual ~Backend() = default;

  // For example "cpu: AVX-512 BF16, 4 threads".
  virtual std::string describe() const = 0;
  // More facts for someone who looks for a cause: names and lines.
  virtual std::vector<std::pair<std::string, std::string>> details() const { return {}; }

  // The dtype of activations for a model of this dtype; f32 on the CPU.
  virtual DType activation_dtype(DType model) const = 0;

  // Zeroed memory. Throws a resource error that names the size.
  virtual Tensor allocate(DType dtype, const Shape& shape) = 0;
  // A tensor with the host's contents. The CPU borrows the memory, which `keep_alive` holds.
  virtual Tensor upload(const ConstTensorView& host, std::shared_ptr<const void> keep_alive) = 0;
  // Overwrites existing backend memory. REQUIRES equal sizes.
  virtual void copy_in(const TensorView& to, const ConstTensorView& host) = 0;
  // Waits for all work before it, then copies. Faults of earlier ops surface here.
  virtual void download(const ConstTensorView& from, std::span<std::byte> host) = 0;

  // Only a device with its own memory has these two; the CPU uses host memory in place.
  virtual Transfers* transfers() { return nullptr; }
  virtual std::optional<DeviceMemory> memory() const { return std::nullopt; }
  // The most device memory that ops allocate for their own use in such a step, and keep.
  virtual uint64_t op_memory(const StepShape& /*shape*/) const { return 0; }

  // Until the next call, all ops compute like in a step of this size. Step::upload() calls this. It
  // is not an op: a backend that computes need not override it, but one that forwards ops must
  // forward this too.
  virtual void compute_as(StepSize size) { step_size_ = size; }

  // out[i] = table[ids[i]].   table [rows, dim] any compute dtype; ids [n] i32, 0 <= id < rows;
  // out [n, dim]. Also gathers rows of activations.
  virtual void embed(const ConstTensorView& table, const ConstTensorView& ids,
                     const TensorView& out) = 0;

  // to[i][j] = from[i * steps.row + j * steps.column]: for weights that a file has in another
  // order.
  // from [..], to [rows, columns], of one type
  virtual void arrange(const ConstTensorView& from, Steps steps, const TensorView& to) = 0;

  // to = the weights of `matrix`, in f32 and rounded once: see core/quantised_matrix.h.
  // to [rows, columns], f32, f16 or bf16
  virtual void decode_weights(const QuantisedMatrix& matrix, const TensorView& to) = 0;

  // Returns a matrix that products of `use` can read in place of one decoded to `compute`, or
  // nothing if it must be decoded. Codes or scales may be laid out anew, in memory that `storage`
  // gets. Products give the bits of decoded weights, except for the order of sums where a library
  // multiplies decoded weights.
  virtual std::optional<QuantisedMatrix> in_place(const QuantisedMatrix& /*matrix*/,
                                                  DType /*compute*/, WeightUse /*use*/,
                                                  std::vector<Tensor>& /*storage*/) {
    return std::nullopt;
  }

  // out = the rows of x, normalised.   x, out [n, dim] activation dtype; out may be x
  virtual void norm(const ConstTensorView& x, const Norm& norm, const TensorView& out) = 0;

  // Computes every projection of x [n, in_dim], with f32 accumulation. x is rounded to the weights'
  // dtype only if that is bf16.
  virtual void linear(const ConstTensorView& x, std::span<const Projection> projections) = 0;

  // Multiplies every head's elements of x by a matrix of its own. Its elements of out get one
  // result per row of the matrix. Rounds and sums like `linear`.
  //   weights [n_heads, out_dim, in_dim], model dtype
  virtual void linear_heads(const ConstHeadColumns& x, const ConstTensorView& weights,
                            const HeadColumns& out) = 0;

  // Copies `count` elements of every head unchanged.
  virtual void copy_columns(const ConstHeadColumns& from, const HeadColumns& to, int64_t count) = 0;

  // Rotates, rounds, observes, quantises and stores: everything between the projections and
  // attention. FP8 caches store fp8_encode(x / scale[head]): a true f32 division, saturating.
  virtual void rope_append(const RopeAppend& args) = 0;

  // Everything before attention: `norm` if entry has one, `linear` to args.q, k and v, norms of Q
  // and K if weights.norms exists, then rope_append. The default calls these ops; an override must
  // give their bits. x [n, dim] activation dtype, not in entry.scratch
  virtual void project_append(const ConstTensorView& x, const Entry& entry,
                              const AttentionWeights& weights, const RopeAppend& args);

  // Causal attention over the paged cache.   q [n, n_heads, head_dim]; out [n, n_heads, v_dim]
  // An FP8 element counts as code * scale. k_scale is folded into the softmax scale and v_scale
  // into the output, both outside the inner loop.
  virtual void attention(const ConstTensorView& q, const PagedKv& kv, const Batch& batch,
                         const AttentionOptions& options, const TensorView& out) = 0;

  // x = silu(conv(x)), in place.   x [n, channels] activation dtype
  // A sequence whose first row is at position 0 starts from a state of zeros. Afterwards the state
  // has what the next rows need. Results have the same bits however rows are cut into steps.
  virtual void causal_conv(const TensorView& x, const CausalConv& conv, const Batch& batch) = 0;

  // out [n, v_heads, v_dim] = S^T q for each row, plus args.skip's term; S is the head's state
  // after it took in the row. States start and continue like in causal_conv; rows go in order of
  // position.
  virtual void recur(const Recurrence& args, const Batch& batch, const TensorView& out) = 0;

  // x = activation(x) * up, or activation(x).   Both [n, hidden_dim] activation dtype.
  virtual void activate(Activation activation, const TensorView& x,
                        const std::optional<ConstTensorView>& up) = 0;

  // `norm` if entry has one, `linear`, then `activate`. The default calls these ops; an override
  // must give their bits.
  // x: see project_append. REQUIRES that no projection accumulates.
  virtual void hidden(const ConstTensorView& x, const Entry& entry, const HiddenProducts& products);

  // Chooses experts for each row of logits [n, experts] f32 by the rules of `routing`; the lower
  // expert comes first among equals.
  // A row with a NaN score gets the first experts, with NaN for all weights. Its result is then NaN
  // too, which later checks report as usual.
  virtual void route(const ConstTensorView& logits, const Routing& routing,
                     const RouterTerms& terms, const Routed& out) = 0;

  // out[i] = sum of weight * down_j(activation(gate_j(x[i])) * up_j(x[i])) over the experts j of
  // row i, in the order of `routed`. Without gates: weight * down_j(activation(up_j(x[i]))).   x,
  // out [n, dim] activation dtype
  // A matrix with a bias adds it to its products.
  // f32 accumulation; x is rounded like in `linear`. An expert's weights are read once for all rows
  // that are sent to it.
  virtual void experts(const ConstTensorView& x, const Routed& routed,
                       const ExpertMatrices& matrices, const TensorView& out) = 0;

  // Multiplies each row of x by the sigmoid of its gate.   x [n, dim] activation dtype; gates
  // [n, 1] f32
  virtual void gate_rows(const TensorView& x, const ConstTensorView& gates) = 0;

  // x += multiplier * y.   Both [n, dim] activation dtype.
  virtual void add(const TensorView& x, const ConstTensorView& y, float multiplier) = 0;

  // x = multiplier * x, or cap * tanh(multiplier * x / cap) if cap is not 0.   x [n, dim]
  // activation dtype, or f32 for logits, which are f32 on every backend
  virtual void scale(const TensorView& x, float multiplier, float cap) = 0;

  // out = max(out, bits of the largest |x| as an f32). NaN ranks above infinity, and infinity above
  // all numbers.   x [n, dim] activation dtype; out [1] u64
  virtual void amax(const ConstTensorView& x, const TensorView& out) = 0;

  // Multiplies each row of x by weight, element by element.   x [n, dim] activation dtype; weight
  // [dim], model dtype
  virtual void scale_columns(const TensorView& x, const ConstTensorView& weight) = 0;

  // For each row: y[s] += sum over k of (shares[s * count + k] + more) * x[k]; y may be x.
  // x [n, count, dim], y [n, any, dim] activation dtype, both of at most kMostStreams; shares
  // [n, any * count] f32
  virtual void mix_streams(const ConstTensorView& x, const ConstTensorView& shares, float more,
                           const TensorView& y) = 0;

  // Scales each row of x to the root mean square of the same row of `like`. A mean square of x
  // below kLeastMeanSquare counts as kLeastMeanSquare. Both [n, dim] activation dtype.
  virtual void match_rms(const TensorView& x, const ConstTensorView& like) = 0;

  // x = max(0, x - (mean + deviations * deviation)), with each row's own mean and standard
  // deviation.   x [n, dim] activation dtype
  virtual void cut_below(const TensorView& x, float deviations) = 0;

  // Draws ids [n] i32 from logits [n, vocab_size] f32, vocab_size <= kMaxSampledTokens. The same
  // logits give the same ids on every backend. A row with a NaN gets -1 - i, where token i has the
  // first NaN.
  virtual void sample(const ConstTensorView& logits, const Sampling& sampling,
                      const TensorView& ids) = 0;

  // Ops between begin and end are recorded, not run; replay() runs them on what their memory holds
  // by then. No allocation, copy or download may happen in between, so callers run a step once
  // before they record it. None of these may be called if can_record() is false.
  virtual bool can_record() const { return false; }
  virtual void begin_recording();
  virtual Recording end_recording();
  virtual void replay(const Recording& recording);

 protected:
  StepSize step_size() const { return step_size_; }

 private:
  ConstTensorView enter(const ConstTensorView& x, const Entry& entry);

  StepSize step_size_;
};

}  // namespace fp8kv
