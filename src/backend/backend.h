// The seam between the model and the hardware: memory, and a handful of ops, each one thing that a
// transformer wants done at the largest size that has one meaning.
// Ops take views and numbers; no config, no layer index, no policy. What varies between models
// becomes data before it gets here: every RoPE scaling is a table, every scale is per KV head.
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

// How many rows an op is to take a step for. An op computes few rows in another way than many, and
// the two ways round differently: the same token could get other bits because of what is beside it
// in the step. Where it must not, every such step is given one size, whatever its own is; see
// Backend::compute_as. 0: the step's own size, for which ops are fastest.
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
  // [n_seqs] i32: where the sequence's states are kept, in layers that have one; -1: nowhere, which
  // REQUIRES that its first row is at position 0. No data: nowhere, all of them.
  ConstTensorView states = {};
};

// Of each head in each row those elements that begin at `first`.
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
  // What `weight` is worth, where its data is null: a matrix that Backend::in_place gave.
  std::optional<QuantisedMatrix> codes = {};
};

// One product with a shared input: out = x * weight^T + bias, or out += ... where `accumulate`,
// which is how the residual stream takes what a block gives as it is.
struct Projection {
  ConstTensorView weight;               // [out_dim, in_dim], model dtype
  std::optional<ConstTensorView> bias;  // [out_dim], model dtype
  TensorView out;                       // [n, out_dim], activation dtype
  bool accumulate = false;
  std::optional<QuantisedMatrix> codes = {};  // as Linear::codes
};

// A row is divided by its root mean square or, where the kind is `layer`, brought to mean 0 and
// deviation 1; then multiplied by the weight, and the bias is added.
struct Norm {
  NormKind kind = NormKind::rms;
  float eps = 0.0f;            // added to the mean square
  float weight_offset = 0.0f;  // added to every weight
  // [dim], or [k, dim], of which row i takes those of i % k; model dtype, or f32 of `rms`
  ConstTensorView weight = {};
  std::optional<ConstTensorView> bias = {};  // [dim], model dtype; `layer` only
};

// What rows are on their way into products: normalised, or as they are.
struct Entry {
  std::optional<Norm> norm;
  TensorView scratch;  // [n, dim], activation dtype: memory to work in, unspecified afterwards
};

struct QkNorms {
  // [head_dim], or [n_heads, head_dim] and [n_kv_heads, ..] of heads with weights of their own; of
  // all heads together [n_heads * head_dim] and [n_kv_heads * ..]
  Norm q, k;
  bool whole = false;          // all heads of a row are normalised together; else each by itself
  std::optional<Norm> v = {};  // [head_dim], of every head of V
};

struct AttentionWeights {
  Linear q;     // [n_heads * head_dim, dim]
  Linear k, v;  // [n_kv_heads * head_dim, dim]; unused where K and V have no heads
  std::optional<QkNorms> norms = {};
};

// The first half of a feed-forward block: activation(gate) * up, which gate.out then has, up.out
// being unspecified; without a gate activation(up), which up.out has.
struct HiddenProducts {
  std::optional<Projection> gate;
  Projection up;
  Activation activation = Activation::silu;
};

// With K and V of no heads Q alone is rotated, and nothing is appended or observed: layers that
// read the cache of another.
struct RopeAppend {
  TensorView q;  // [n, n_heads, head_dim], activation dtype; rotated in place
  // Where V is in K (PagedKv::v_in_k), `k` has only the elements that are K's alone.
  TensorView k;  // [n, n_kv_heads, head_dim], activation dtype; rotated in place
  TensorView v;  // [n, n_kv_heads, v_dim], activation dtype
  // [max_positions, rotary_dim] f32: cosines, then sines, of rotary_dim / 2 angles. The first
  // rotary_dim elements of a head are rotated, in `pairs`; the others stay as they are.
  ConstTensorView rope;
  Batch batch;  // positions and slots are used
  PagedKv kv;
  DType round_to;  // K (after RoPE), V and Q (after RoPE) are rounded once to this dtype
                   // before anything sees them: the model's dtype, as in every runtime
  // [3, n_kv_heads, kMagnitudeWords] u64 statistics of Q, K and V as rounded, accumulated; see
  // core/histogram.h. Q of a head counts for the KV head it reads. Absent: nothing is observed.
  std::optional<TensorView> magnitudes;
  RopePairs pairs = RopePairs::halves;
  std::optional<ConstTensorView> q_rope = {};  // of Q, where it is not that of K; same shape
};

// What puts Q, K and V where `args` has them; Q alone where K and V have no heads.
std::vector<Projection> projections_of(const AttentionWeights& weights, const RopeAppend& args);

// Elements from one of a matrix to the next in its column and in its row.
struct Steps {
  int64_t row = 0;
  int64_t column = 1;
};

// How the next token of each row is drawn: among the top_k likeliest (0: all), of these among the
// likeliest that make up top_p, the lower id first among equals, as often as softmax(logits /
// temperature) says; at temperature 0 the likeliest. All on the backend.
struct Sampling {
  ConstTensorView temperature;  // [n] f32, >= 0
  ConstTensorView top_k;        // [n] i32, >= 0
  ConstTensorView top_p;        // [n] f32, in (0, 1]
  ConstTensorView seed;         // [n] u64
  ConstTensorView position;     // [n] i32: with the seed, all that chance depends on
};

// What a router has for each expert; [experts], any compute dtype.
struct RouterTerms {
  std::optional<ConstTensorView> choice_bias = {};  // added to scores while experts are chosen
  std::optional<ConstTensorView> factors = {};  // multiplies the weight of the chosen at the end
};

// What a router chose for each row.
struct Routed {
  TensorView ids;      // [n, per_token] i32: the experts, in rising order
  TensorView weights;  // [n, per_token] f32: how much each counts
  // [experts] u64: how many rows each was chosen for, added to what is there. Absent: not counted.
  std::optional<TensorView> counts;
};

// Added to the products of each expert; model dtype. On GPUs beside ExpertMatrices::swiglu alone.
struct ExpertBiases {
  ConstTensorView gate, up;  // [experts, hidden_dim]
  ConstTensorView down;      // [experts, dim]; what it is added to is weighed with it
};

// The matrices of several experts, which lie anywhere on the backend.
struct ExpertMatrices {
  // [3, experts] u64: where gate and up [hidden_dim, dim] and down [dim, hidden_dim] of each begin;
  // 0 for a gate that there is not
  ConstTensorView addresses;
  DType dtype = DType::f32;  // of the matrices: the model's
  int64_t hidden_dim = 0;
  Activation activation = Activation::silu;
  bool weigh_input = false;  // weights multiply rows on their way in, not what is made of them
  // [3 * experts], in the order of `addresses`: what Backend::in_place gave for a matrix, which
  // then has no address. Empty: none.
  std::span<const std::optional<QuantisedMatrix>> codes = {};
  std::optional<ExpertBiases> biases = {};
  std::optional<ClampedSwiglu> swiglu = {};  // in place of the activation
  bool gated = true;  // else there is no gate, nor `biases` or `swiglu`: down(activation(up(x)))
  // [experts] u64: raised as Backend::amax does to the largest magnitude of what down of each
  // multiplies. Absent: it is not looked at.
  std::optional<TensorView> down_amax = {};
};

// A convolution of each channel with its own last tokens, then SiLU.
struct CausalConv {
  // [channels, width], model dtype, width <= kMostConvWidth; the last is the token's
  ConstTensorView weight;
  std::optional<ConstTensorView> bias;  // [channels], model dtype
  TensorView state;  // [slots, width - 1, channels] f32: the tokens before; see Batch::states
};

// What a row is to the state of its sequence, one for each head of V. A head decays by
// exp(-exp(a_log) * t) and takes the row in with a strength, where t = softplus(step + step_bias),
// brought within `least_step` and `most_step`, which is the strength if `strength` is absent; else
// that is its sigmoid.
struct Recurrence {
  StateUpdate update = StateUpdate::delta;
  ConstTensorView q, k;  // [n, k_heads, k_dim], activation dtype; k_dim <= kMostStateRows
  ConstTensorView v;     // [n, v_heads, v_dim], activation dtype
  ConstTensorView step;  // [n, v_heads] f32
  std::optional<ConstTensorView> strength;  // [n, v_heads] f32
  ConstTensorView a_log, step_bias;         // [v_heads], any compute dtype
  float least_step = 0.0f;
  float most_step = std::numeric_limits<float>::infinity();
  // [v_heads], any compute dtype: V times this is added to what is read. Absent: nothing is.
  std::optional<ConstTensorView> skip = {};
  // Q and K are brought to length 1, with kUnitEps added to the squared length, and Q is then
  // divided by the root of k_dim.
  bool unit = false;
  TensorView state;  // [slots, state_elements] f32; see core/recurrence.h and Batch::states
};

struct AttentionOptions {
  float scale = 1.0f;  // multiplies q . k
  int64_t window = 0;  // a row sees the last `window` positions, itself included; 0: all
  // A row sees positions from the last multiple of this on, on GPUs in a slow kernel; 0: all.
  int64_t chunk = 0;
  // On GPUs the next three take a slow kernel.
  float cap = 0.0f;  // scores become cap * tanh(score / cap); 0: they are left alone
  // [n_heads, positions] f32: added to the score, scaled, of the token at a position. REQUIRES more
  // positions than the cache has tokens. Absent: nothing is added.
  std::optional<ConstTensorView> bias = {};
  // [n_heads], model dtype: scores of one more token for each head, which is always seen and whose
  // value is 0. Absent: there is none.
  std::optional<ConstTensorView> sinks = {};
  // As RopeAppend::round_to of these tokens: Q and the cache hold no number that this dtype cannot.
  DType rounded_to = DType::f32;
};

enum class WeightUse { linear, experts };  // the op that a matrix is for

// Of a device with memory of its own.
struct DeviceMemory {
  uint64_t in_use = 0;           // bytes that this backend holds, as asked for
  uint64_t peak = 0;             // the most it has held
  std::optional<uint64_t> free;  // what the device has left; absent where nothing limits it
};

// How large a step is, for those who plan memory.
struct StepShape {
  int64_t rows = 0;
  int64_t sequences = 0;
  int64_t max_pages = 0;  // of a row of Batch::page_table
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

// A step's launches, to be repeated as they were: pointers, sizes and all numbers that the host
// gave.
using Recording = std::shared_ptr<void>;

class Backend {
 public:
  virtual ~Backend() = default;

  // "cpu: AVX-512 BF16, 4 threads".
  virtual std::string describe() const = 0;
  // What else whoever looks for the cause of something wants to know: names and lines.
  virtual std::vector<std::pair<std::string, std::string>> details() const { return {}; }

  // What activations are held in for a model of this dtype: f32 on the CPU.
  virtual DType activation_dtype(DType model) const = 0;

  // Zeroed memory. Throws a resource error that names the size.
  virtual Tensor allocate(DType dtype, const Shape& shape) = 0;
  // A tensor with the host's contents. The CPU borrows the memory, which `keep_alive` holds.
  virtual Tensor upload(const ConstTensorView& host, std::shared_ptr<const void> keep_alive) = 0;
  // Overwrites existing backend memory. REQUIRES equal sizes.
  virtual void copy_in(const TensorView& to, const ConstTensorView& host) = 0;
  // Waits for all work before it, then copies. Faults of earlier ops surface here.
  virtual void download(const ConstTensorView& from, std::span<std::byte> host) = 0;

  // Both are there for a device with memory of its own; on the CPU host memory is used in place.
  virtual Transfers* transfers() { return nullptr; }
  virtual std::optional<DeviceMemory> memory() const { return std::nullopt; }
  // Device memory that ops take for themselves in such a step, at most; they keep it.
  virtual uint64_t op_memory(const StepShape& /*shape*/) const { return 0; }

  // All ops from here on compute as in a step of this size, until the next call: Step::upload() has
  // it as the step was told. Not an op, so that it needs no override where this backend computes;
  // one that hands its ops on to another must hand this on too.
  virtual void compute_as(StepSize size) { step_size_ = size; }

  // out[i] = table[ids[i]].   table [rows, dim] any compute dtype; ids [n] i32, 0 <= id < rows;
  // out [n, dim]. Also gathers rows of activations.
  virtual void embed(const ConstTensorView& table, const ConstTensorView& ids,
                     const TensorView& out) = 0;

  // to[i][j] = from[i * steps.row + j * steps.column]: weights that a file has in another order.
  // from [..], to [rows, columns], of one type
  virtual void arrange(const ConstTensorView& from, Steps steps, const TensorView& to) = 0;

  // to = the weights of `matrix`, in f32 and rounded once: see core/quantised_matrix.h.
  // to [rows, columns], f32, f16 or bf16
  virtual void decode_weights(const QuantisedMatrix& matrix, const TensorView& to) = 0;

  // A matrix that products of `use` may have in place of one that is decoded to `compute`: this
  // one, or one whose codes or scales lie otherwise, in memory that `storage` gets. Nothing where
  // it has to be decoded. Products give the bits of decoded weights, but for the order of sums
  // where a library multiplies these.
  virtual std::optional<QuantisedMatrix> in_place(const QuantisedMatrix& /*matrix*/,
                                                  DType /*compute*/, WeightUse /*use*/,
                                                  std::vector<Tensor>& /*storage*/) {
    return std::nullopt;
  }

  // out = the rows of x, normalised.   x, out [n, dim] activation dtype; out may be x.
  virtual void norm(const ConstTensorView& x, const Norm& norm, const TensorView& out) = 0;

  // Every projection of x [n, in_dim]. f32 accumulation; x is rounded to the weights' dtype when
  // that is bf16, and not otherwise.
  virtual void linear(const ConstTensorView& x, std::span<const Projection> projections) = 0;

  // Every head's elements of x times a matrix of its own, into its elements of out, with one for
  // each row of the matrix. Rounded and summed as in linear.
  //   weights [n_heads, out_dim, in_dim], model dtype
  virtual void linear_heads(const ConstHeadColumns& x, const ConstTensorView& weights,
                            const HeadColumns& out) = 0;

  // `count` elements of every head, as they are.
  virtual void copy_columns(const ConstHeadColumns& from, const HeadColumns& to, int64_t count) = 0;

  // Rotate, round, observe, quantise and store: everything between the projections and attention.
  // FP8 caches store fp8_encode(x / scale[head]): a true f32 division, saturating.
  virtual void rope_append(const RopeAppend& args) = 0;

  // norm where entry has one, linear to args.q, k and v, norm of Q and K where weights.norms is
  // there, then rope_append: all before attention. Has the bits of these, which is what it is
  // unless overridden. x [n, dim] activation dtype, not in entry.scratch.
  virtual void project_append(const ConstTensorView& x, const Entry& entry,
                              const AttentionWeights& weights, const RopeAppend& args);

  // Causal attention over what the cache holds.   q [n, n_heads, head_dim]; out [n, n_heads, v_dim]
  // FP8 elements count as code * scale: k_scale is folded into the softmax scale and v_scale into
  // the output, outside the inner loop.
  virtual void attention(const ConstTensorView& q, const PagedKv& kv, const Batch& batch,
                         const AttentionOptions& options, const TensorView& out) = 0;

  // x = silu(conv(x)), in place.   x [n, channels] activation dtype
  // A sequence whose first row is at position 0 begins with a state of zeros; the state is then
  // what the next rows need. How rows are cut into steps changes no bit.
  virtual void causal_conv(const TensorView& x, const CausalConv& conv, const Batch& batch) = 0;

  // out [n, v_heads, v_dim] = S^T q of each row, S being its head's state once it has the row in
  // it, plus what args.skip gives. States begin and go on as in causal_conv, rows by position.
  virtual void recur(const Recurrence& args, const Batch& batch, const TensorView& out) = 0;

  // x = activation(x) * up, or activation(x).   Both [n, hidden_dim] activation dtype.
  virtual void activate(Activation activation, const TensorView& x,
                        const std::optional<ConstTensorView>& up) = 0;

  // norm where entry has one, linear, then activate. Has the bits of these, which is what it is
  // unless overridden.
  // x as in project_append. REQUIRES that no projection accumulates.
  virtual void hidden(const ConstTensorView& x, const Entry& entry, const HiddenProducts& products);

  // Chooses experts for each row of logits [n, experts] f32, as `routing` says, the lower one first
  // among equals.
  // A row with a score that is NaN gets the first experts, with NaN for all weights: what is made
  // of it is NaN too, and is reported where that always is.
  virtual void route(const ConstTensorView& logits, const Routing& routing,
                     const RouterTerms& terms, const Routed& out) = 0;

  // out[i] = sum over the experts j that `routed` has for row i, in its order, of weight *
  // down_j(activation(gate_j(x[i])) * up_j(x[i])), or of down_j(activation(up_j(x[i]))) without
  // gates.   x, out [n, dim] activation dtype
  // A matrix with a bias adds it to its products.
  // f32 accumulation; x is rounded as in linear. An expert's weights are read once for all rows
  // that are sent to it.
  virtual void experts(const ConstTensorView& x, const Routed& routed,
                       const ExpertMatrices& matrices, const TensorView& out) = 0;

  // Each row of x times the sigmoid of its gate.   x [n, dim] activation dtype; gates [n, 1] f32
  virtual void gate_rows(const TensorView& x, const ConstTensorView& gates) = 0;

  // x += multiplier * y.   Both [n, dim] activation dtype.
  virtual void add(const TensorView& x, const ConstTensorView& y, float multiplier) = 0;

  // x = multiplier * x; where cap is not 0, cap * tanh of that / cap.   x [n, dim] activation
  // dtype, or f32, which logits are on every backend
  virtual void scale(const TensorView& x, float multiplier, float cap) = 0;

  // out = the larger of what it has and the bits of the largest |x|, as an f32: NaN is above
  // infinity, which is above all numbers.   x [n, dim] activation dtype; out [1] u64
  virtual void amax(const ConstTensorView& x, const TensorView& out) = 0;

  // Each row of x times weight, element by element.   x [n, dim] activation dtype; weight [dim],
  // model dtype
  virtual void scale_columns(const TensorView& x, const ConstTensorView& weight) = 0;

  // Of each row, y[s] += the sum over k of (shares[s * count + k] + more) * x[k]; y may be x.
  // x [n, count, dim], y [n, any, dim] activation dtype, both of at most kMostStreams; shares
  // [n, any * count] f32
  virtual void mix_streams(const ConstTensorView& x, const ConstTensorView& shares, float more,
                           const TensorView& y) = 0;

  // Each row of x times what gives it the root mean square of that row of `like`, if its own mean
  // square is kLeastMeanSquare or more, and counts as that if not. Both [n, dim] activation dtype.
  virtual void match_rms(const TensorView& x, const ConstTensorView& like) = 0;

  // x = max(0, x - (mean + deviations * deviation)), of each row the mean and the root of the mean
  // square distance from it.   x [n, dim] activation dtype
  virtual void cut_below(const TensorView& x, float deviations) = 0;

  // Draws ids [n] i32 from logits [n, vocab_size] f32, vocab_size <= kMaxSampledTokens. The same
  // logits give the same ids on every backend. A row with a NaN gets -1 - i, i the first token
  // whose logit is one.
  virtual void sample(const ConstTensorView& logits, const Sampling& sampling,
                      const TensorView& ids) = 0;

  // Ops between begin and end are recorded and not run; replay() runs them on what their memory
  // then holds. Nothing is allocated, copied in or downloaded meanwhile: a step is recorded once it
  // has been run. Where a backend cannot, none of these may be called.
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
