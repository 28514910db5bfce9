// The seam between the model and the hardware: memory and a handful of ops. Each op does one thing
// that a transformer needs, as much of it as has one clear meaning.
// Ops take views and numbers; no config, no layer index, no policy. Whatever varies between models
// is data by then: every RoPE scaling is a table, every scale is per KV head.
// A backend may run asynchronously but in order; only `download` waits.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend_memory.h"
#include "backend/op_arguments.h"
#include "core/model/quantised_matrix.h"
#include "core/model/streams.h"

namespace fp8kv {

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

class Backend : public BackendMemory {
 public:
  // For example "cpu: AVX-512 BF16, 4 threads".
  virtual std::string describe() const = 0;
  // More facts for someone who looks for a cause: names and lines.
  virtual std::vector<std::pair<std::string, std::string>> details() const { return {}; }

  // The dtype of activations for a model of this dtype; f32 on the CPU.
  virtual DType activation_dtype(DType model) const = 0;

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

  // to = the weights of `matrix`, in f32 and rounded once: see core/model/quantised_matrix.h.
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
  virtual void project_append(const ConstTensorView& x, const InputNorm& entry,
                              const AttentionWeights& weights, const RopeAppend& args);

  // Causal attention over the paged cache.   q [n, n_heads, head_dim]; out [n, n_heads, v_dim]
  // An FP8 element counts as code * scale. k_scale is folded into the softmax scale and v_scale
  // into the output, both outside the inner loop.
  virtual void attention(const ConstTensorView& q, const PagedKv& kv, const Batch& batch,
                         const AttentionOptions& options, const TensorView& out) = 0;

  // Stores the keys that pooled choices are made by.
  virtual void append_pooled(const PooledAppend& args) = 0;

  // Chooses the tokens that each row sees: those with the highest scores among the row's own and
  // all before it. A token's score is the sum over heads of weight * max(0, scale * q . k). The
  // earlier comes first among equals, and a NaN comes last. Without weights each head chooses
  // blocks, by the largest q . k of a block. Pooled, blocks have one key each: see
  // TokenScores::pooled. chosen [n, count] or [n, n_heads, count] i32: see AttentionOptions
  virtual void choose_tokens(const TokenScores& args, const Batch& batch,
                             const TensorView& chosen) = 0;

  // out [n, dim] = for each row that ends a block of tokens, the block's pooled row; zeros for
  // other rows. States start and continue like in causal_conv. Results have the same bits however
  // rows are cut into steps.
  virtual void pool_tokens(const TokenPools& args, const Batch& batch, const TensorView& out) = 0;

  // x = out_gate * silu(conv(in_gate * x)), in place. With adds_input, the input of the convolution
  // is added to its result.   x [n, channels] activation dtype
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

  // gate = the clamped SwiGLU of gate and up.   Both [n, hidden_dim] activation dtype.
  virtual void clamped_swiglu(const ClampedSwiglu& how, const TensorView& gate,
                              const ConstTensorView& up) = 0;

  // `norm` if entry has one, `linear`, then `activate`. The default calls these ops; an override
  // must give their bits.
  // x: see project_append. REQUIRES that no projection accumulates.
  virtual void hidden(const ConstTensorView& x, const InputNorm& entry,
                      const HiddenProducts& products);

  // Chooses experts for each row of logits [n, experts] f32 by the rules of `routing`; the lower
  // expert comes first among equals. Experts that are given are only weighed.
  // A row with a NaN score gets the first experts, with NaN for all weights. Its result is then NaN
  // too, which later checks report as usual.
  virtual void route(const ConstTensorView& logits, const Routing& routing,
                     const RouterTerms& terms, const Routed& out) = 0;

  // out[i] = sum of weight * down_j(activation(gate_j(x[i])) * up_j(x[i])) over the experts j of
  // row i, in the order of `routed`. Without gates: weight * down_j(activation(up_j(x[i]))).   x,
  // out [n, dim] activation dtype
  // A matrix with a bias adds it to its products. An identity gives weight * x[i], and comes last.
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

  // Multiplies each row of x by the factors of its columns.   x [n, dim] activation dtype
  virtual void scale_columns(const TensorView& x, const ColumnFactors& factors) = 0;

  // For each row: y[s] += sum over k of (shares[s * count + k] + how.more) * x[k]; y may be x.
  // Without how.onto, y[s] becomes that sum.   x [n, count, dim], y [n, any, dim] activation dtype,
  // both of at most kMostMixed; shares [n, any * count] f32
  virtual void mix_streams(const ConstTensorView& x, const ConstTensorView& shares,
                           const StreamSum& how, const TensorView& y) = 0;

  // The shares by which rows read and write their streams: see HyperConfig.
  virtual void hyper_shares(const HyperRows& rows, const HyperConfig& config,
                            const HyperShares& out) = 0;

  // How much a value counts for each stream of a row: gates[i][s] = sigmoid(r), where r is the root
  // of |d| with the sign of d = keys[i][s] . queries[i][s] / sqrt(dim), and |d| counts as
  // kLeastProduct at least.
  //   keys, queries [n, streams, dim] activation dtype; gates [n, streams] f32
  virtual void stream_gates(const ConstTensorView& keys, const ConstTensorView& queries,
                            const TensorView& gates) = 0;

  // Scales each row of x to the root mean square of the same row of `like`. A mean square of x
  // below kLeastMeanSquare counts as kLeastMeanSquare. Both [n, dim] activation dtype.
  virtual void match_rms(const TensorView& x, const ConstTensorView& like) = 0;

  // x = max(0, x - (mean + deviations * deviation)), with each row's own mean and standard
  // deviation.   x [n, dim] activation dtype
  virtual void cut_below(const TensorView& x, float deviations) = 0;

  // x = xIELU(x).   x [n, dim] activation dtype
  virtual void xielu(const TensorView& x, const Xielu& numbers) = 0;

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
  ConstTensorView enter(const ConstTensorView& x, const InputNorm& entry);

  StepSize step_size_;
};

}  // namespace fp8kv
