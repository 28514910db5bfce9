#include "backend/cpu/cpu_backend.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "backend/cpu/attention/cpu_append_pooled.h"
#include "backend/cpu/attention/cpu_attention.h"
#include "backend/cpu/attention/cpu_attention_pools.h"
#include "backend/cpu/attention/cpu_choose_tokens.h"
#include "backend/cpu/attention/cpu_rope.h"
#include "backend/cpu/cpu_hyper.h"
#include "backend/cpu/cpu_pools.h"
#include "backend/cpu/cpu_recur_elements.h"
#include "backend/cpu/cpu_recurrence.h"
#include "backend/cpu/cpu_route.h"
#include "backend/cpu/cpu_sample.h"
#include "backend/cpu/cpu_streams.h"
#include "backend/cpu/isa/common/cpu_kernels.h"
#include "backend/cpu/memory/cpu_arrange.h"
#include "backend/cpu/memory/cpu_context.h"
#include "backend/cpu/memory/cpu_memory.h"
#include "backend/cpu/products/cpu_codes_along_rows.h"
#include "backend/cpu/products/cpu_decode_weights.h"
#include "backend/cpu/products/cpu_experts.h"
#include "backend/cpu/products/cpu_linear.h"
#include "backend/cpu/products/cpu_linear_heads.h"
#include "base/error.h"
#include "base/machine/cpu_topology.h"
#include "base/machine/thread_pool.h"
#include "base/text.h"

namespace fp8kv {
namespace {

// Elements of one job of an op that only passes over memory: some microseconds of work.
constexpr int64_t kJobElements = 16384;

float xielu_of(float x, const Xielu& numbers) {
  const float shared = numbers.beta * x;
  if (x > 0) return numbers.positive * x * x + shared;
  return (std::expm1(std::fmin(x, numbers.eps)) - x) * numbers.negative + shared;
}

// Sum of squares in double: after several layers, f32 sums would show in the fifth digit. The sum
// has lanes, so that it can be vectorised; their number is fixed, so the result is too.
double sum_of_squares(const float* x, int64_t count) {
  constexpr int kLanes = 8;
  double lanes[kLanes] = {};
  const int64_t whole = count / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) {
    for (int j = 0; j < kLanes; ++j) {
      const double value = x[i + j];
      lanes[j] += value * value;
    }
  }
  for (int64_t i = whole; i < count; ++i) lanes[0] += double{x[i]} * double{x[i]};
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

// memcpy refuses null pointers even for 0 bytes.
void copy(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

class CpuBackend : public Backend {
 public:
  CpuBackend(int threads, CpuIsa isa) : isa_(isa), kernels_(cpu_kernels(isa)), pool_(threads) {}

  std::string describe() const override {
    return cat("cpu: ", cpu_isa_name(isa_), ", ",
               count_of(static_cast<uint64_t>(pool_.threads()), "thread"));
  }

  DType activation_dtype(DType /*model*/) const override { return DType::f32; }

  Tensor allocate(DType dtype, const Shape& shape) override {
    TensorView view{nullptr, dtype, shape};
    std::shared_ptr<std::byte> memory = allocate_zeroed(view.bytes());
    view.data = memory.get();
    return {view, std::move(memory)};
  }

  Tensor upload(const ConstTensorView& host, std::shared_ptr<const void> keep_alive) override {
    // Borrowed memory is only read: uploaded tensors are weights and inputs.
    return {TensorView{const_cast<std::byte*>(host.data), host.dtype, host.shape},
            std::move(keep_alive)};
  }

  void copy_in(const TensorView& to, const ConstTensorView& host) override {
    FP8KV_ASSERT(to.bytes() == host.bytes());
    copy(to.data, host.data, host.bytes());
  }

  void download(const ConstTensorView& from, std::span<std::byte> host) override {
    FP8KV_ASSERT(from.bytes() == host.size());
    copy(host.data(), from.data, host.size());
  }

  void embed(const ConstTensorView& table, const ConstTensorView& ids,
             const TensorView& out) override {
    const int64_t dim = table.shape[1];
    const int64_t row_bytes = dim * static_cast<int64_t>(dtype_bytes(table.dtype));
    for_rows(ids.shape[0], dim, [&](int64_t row, int /*thread*/) {
      const int64_t id = ids.as<int32_t>()[row];
      kernels_.to_float[table.dtype](table.data + id * row_bytes, dim, out.as<float>() + row * dim);
    });
  }

  void arrange(const ConstTensorView& from, Steps steps, const TensorView& to) override {
    cpu_arrange(pool_, from, steps, to);
  }
  void decode_weights(const QuantisedMatrix& matrix, const TensorView& to) override {
    cpu_decode_weights(context(), matrix, to);
  }

  std::optional<QuantisedMatrix> in_place(const QuantisedMatrix& matrix, DType compute,
                                          WeightUse /*use*/,
                                          std::vector<Tensor>& storage) override {
    QuantisedMatrix read = matrix;
    if (has_groups_in_order(matrix)) read.groups = nullptr;
    if (reads_codes(read, compute)) return read;
    const auto turned = form_along_rows(read);
    if (!turned || !reads_codes(*turned, compute)) return std::nullopt;
    return codes_along_rows(pool_, read, storage);
  }

  void norm(const ConstTensorView& x, const Norm& norm, const TensorView& out) override {
    FP8KV_ASSERT(x.dtype == DType::f32 && out.dtype == DType::f32);
    FP8KV_ASSERT(!norm.bias || norm.kind == NormKind::layer);
    const int64_t dim = x.shape[1], n_weights = norm.weight.shape.elements();
    const int64_t n_kinds = n_weights / dim;  // kinds of rows, each with weights of its own
    FP8KV_ASSERT(n_kinds * dim == n_weights);
    float* all_weights = norm_weights_.floats(static_cast<size_t>(n_weights + dim));
    float* biases = all_weights + n_weights;
    kernels_.to_float[norm.weight.dtype](norm.weight.data, n_weights, all_weights);
    if (norm.weight_offset != 0.0f) {
      for (int64_t i = 0; i < n_weights; ++i) all_weights[i] += norm.weight_offset;
    }
    std::fill_n(biases, dim, 0.0f);
    if (norm.bias) kernels_.to_float[norm.bias->dtype](norm.bias->data, dim, biases);
    for_rows(x.shape[0], dim, [&](int64_t row, int /*thread*/) {
      const float* from = x.as<float>() + row * dim;
      float* to = out.as<float>() + row * dim;
      const float* weights = all_weights + row % n_kinds * dim;
      if (norm.kind == NormKind::rms) {
        const double square = sum_of_squares(from, dim) / static_cast<double>(dim);
        const auto factor = static_cast<float>(1.0 / std::sqrt(square + double{norm.eps}));
        for (int64_t i = 0; i < dim; ++i) to[i] = from[i] * factor * weights[i];
        return;
      }
      const auto mean =
          static_cast<float>(std::accumulate(from, from + dim, 0.0) / static_cast<double>(dim));
      for (int64_t i = 0; i < dim; ++i) to[i] = from[i] - mean;
      const double square = sum_of_squares(to, dim) / static_cast<double>(dim);
      const auto factor = static_cast<float>(1.0 / std::sqrt(square + double{norm.eps}));
      for (int64_t i = 0; i < dim; ++i) to[i] = to[i] * factor * weights[i] + biases[i];
    });
  }

  void linear(const ConstTensorView& x, std::span<const Projection> projections) override {
    cpu_linear(context(), linear_scratch_, x, projections);
  }

  void linear_heads(const ConstHeadColumns& x, const ConstTensorView& weights,
                    const HeadColumns& out) override {
    cpu_linear_heads(context(), linear_scratch_, x, weights, out);
  }

  void copy_columns(const ConstHeadColumns& from, const HeadColumns& to, int64_t count) override {
    const int64_t width = from.rows.shape[2], to_width = to.rows.shape[2];
    for_rows(from.rows.shape[0] * from.rows.shape[1], count, [&](int64_t row, int /*thread*/) {
      std::copy_n(from.rows.as<float>() + row * width + from.first, count,
                  to.rows.as<float>() + row * to_width + to.first);
    });
  }

  void rope_append(const RopeAppend& args) override { cpu_rope_append(context(), args); }

  void attention(const ConstTensorView& q, const PagedKv& kv, const Batch& batch,
                 const AttentionOptions& options, const TensorView& out) override {
    if (options.pool > 0) return cpu_attention_pools(context(), {q, batch, out}, kv, options);
    cpu_attention(context(), attention_scratch_, {q, batch, out}, kv, options);
  }

  void append_pooled(const PooledAppend& args) override { cpu_append_pooled(context(), args); }
  void choose_tokens(const TokenScores& args, const Batch& batch,
                     const TensorView& chosen) override {
    cpu_choose_tokens(context(), attention_scratch_, args, batch, chosen);
  }

  void pool_tokens(const TokenPools& args, const Batch& batch, const TensorView& out) override {
    cpu_pool_tokens(pool_, args, batch, out);
  }

  void causal_conv(const TensorView& x, const CausalConv& conv, const Batch& batch) override {
    cpu_causal_conv(context(), recurrence_scratch_, x, conv, batch);
  }
  void recur(const Recurrence& args, const Batch& batch, const TensorView& out) override {
    const auto recurring = args.by_element ? cpu_recur_elements : cpu_recur;
    recurring(context(), recurrence_scratch_, args, batch, out);
  }

  void activate(Activation activation, const TensorView& x,
                const std::optional<ConstTensorView>& up) override {
    FP8KV_ASSERT(x.dtype == DType::f32 && (!up || up->dtype == DType::f32));
    const int64_t dim = x.shape[1];
    const CpuKernels::Activate work = kernels_.activate[static_cast<size_t>(activation)];
    for_rows(x.shape[0], dim, [&](int64_t row, int /*thread*/) {
      work(x.as<float>() + row * dim, up ? up->as<float>() + row * dim : nullptr, dim);
    });
  }

  void clamped_swiglu(const ClampedSwiglu& how, const TensorView& gate,
                      const ConstTensorView& up) override {
    FP8KV_ASSERT(gate.dtype == DType::f32 && up.dtype == DType::f32 && gate.shape == up.shape);
    const int64_t dim = gate.shape[1];
    for_rows(gate.shape[0], dim, [&](int64_t row, int /*thread*/) {
      kernels_.clamped_swiglu(gate.as<float>() + row * dim, up.as<float>() + row * dim, dim, how);
    });
  }

  void route(const ConstTensorView& logits, const Routing& routing, const RouterTerms& terms,
             const Routed& out) override {
    cpu_route(pool_, logits, routing, terms, out);
  }

  void experts(const ConstTensorView& x, const Routed& routed, const ExpertMatrices& matrices,
               const TensorView& out) override {
    cpu_experts(context(), expert_scratch_, {x, routed, out}, matrices);
  }

  void gate_rows(const TensorView& x, const ConstTensorView& gates) override {
    const int64_t dim = x.shape[1];
    for_rows(x.shape[0], dim, [&](int64_t row, int /*thread*/) {
      const float gate = 1.0f / (1.0f + std::exp(-gates.as<const float>()[row]));
      float* values = x.as<float>() + row * dim;
      for (int64_t i = 0; i < dim; ++i) values[i] *= gate;
    });
  }

  void add(const TensorView& x, const ConstTensorView& y, float multiplier) override {
    FP8KV_ASSERT(x.dtype == DType::f32 && y.dtype == DType::f32);
    const int64_t dim = x.shape[1];
    for_rows(x.shape[0], dim, [&](int64_t row, int /*thread*/) {
      float* to = x.as<float>() + row * dim;
      const float* from = y.as<float>() + row * dim;
      for (int64_t i = 0; i < dim; ++i) to[i] += multiplier * from[i];
    });
  }

  void scale(const TensorView& x, float multiplier, float cap) override {
    FP8KV_ASSERT(x.dtype == DType::f32);
    const int64_t dim = x.shape[1];
    for_rows(x.shape[0], dim, [&](int64_t row, int /*thread*/) {
      float* values = x.as<float>() + row * dim;
      if (cap != 0.0f) return kernels_.cap(values, dim, multiplier, cap);
      for (int64_t i = 0; i < dim; ++i) values[i] *= multiplier;
    });
  }

  void amax(const ConstTensorView& x, const TensorView& out) override {
    FP8KV_ASSERT(x.dtype == DType::f32 && out.dtype == DType::u64);
    const int64_t dim = x.shape[1];
    std::vector<uint32_t> most(static_cast<size_t>(pool_.threads()), 0);
    for_rows(x.shape[0], dim, [&](int64_t row, int thread) {
      uint32_t& mine = most[static_cast<size_t>(thread)];
      mine = kernels_.largest_bits(x.as<float>() + row * dim, dim, mine);
    });
    auto& largest = *out.as<uint64_t>();
    for (const uint32_t each : most) largest = std::max<uint64_t>(largest, each);
  }

  void scale_columns(const TensorView& x, const ColumnFactors& factors) override {
    cpu_scale_columns(pool_, x, factors);
  }
  void mix_streams(const ConstTensorView& x, const ConstTensorView& shares, const StreamSum& how,
                   const TensorView& y) override {
    cpu_mix_streams(pool_, x, shares, how, y);
  }
  void hyper_shares(const HyperRows& rows, const HyperConfig& config,
                    const HyperShares& out) override {
    cpu_hyper_shares(pool_, rows, config, out);
  }
  void stream_gates(const ConstTensorView& keys, const ConstTensorView& queries,
                    const TensorView& gates) override {
    cpu_stream_gates(pool_, keys, queries, gates);
  }
  void match_rms(const TensorView& x, const ConstTensorView& like) override {
    cpu_match_rms(pool_, x, like);
  }
  void cut_below(const TensorView& x, float deviations) override {
    cpu_cut_below(pool_, x, deviations);
  }
  void xielu(const TensorView& x, const Xielu& numbers) override {
    FP8KV_ASSERT(x.dtype == DType::f32);
    const int64_t dim = x.shape[1];
    for_rows(x.shape[0], dim, [&](int64_t row, int) {
      float* values = x.as<float>() + row * dim;
      for (int64_t i = 0; i < dim; ++i) values[i] = xielu_of(values[i], numbers);
    });
  }

  void sample(const ConstTensorView& logits, const Sampling& sampling,
              const TensorView& ids) override {
    cpu_sample(pool_, logits, sampling, ids);
  }

 private:
  CpuContext context() { return {kernels_, pool_, step_size()}; }

  // Calls work(row, thread) for every row, in jobs of several rows if rows are short.
  template <typename Work>
  void for_rows(int64_t n, int64_t dim, const Work& work) {
    const int64_t rows = std::max<int64_t>(1, kJobElements / std::max<int64_t>(dim, 1));
    pool_.run((n + rows - 1) / rows, [&](int64_t job, int thread) {
      const int64_t end = std::min(n, (job + 1) * rows);
      for (int64_t row = job * rows; row < end; ++row) work(row, thread);
    });
  }

  CpuIsa isa_;
  const CpuKernels& kernels_;
  ThreadPool pool_;
  Scratch norm_weights_;  // and biases
  LinearScratch linear_scratch_;
  AttentionScratch attention_scratch_;
  ExpertScratch expert_scratch_;
  RecurrenceScratch recurrence_scratch_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(int threads, CpuIsa isa) {
  if (!has_cpu_isa(isa)) {
    throw Error(cat("this processor has no ", cpu_isa_name(isa)),
                cat("it needs ", cpu_isa_row(isa).needs), ErrorKind::device);
  }
  return std::make_unique<CpuBackend>(threads > 0 ? threads : usable_cores(), isa);
}

}  // namespace fp8kv
