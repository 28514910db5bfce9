// The backend on a GPU, declared for the files with its ops.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "base/error.h"
#include "base/text.h"
#include "kernels/device/device.h"
#include "kernels/launch_attention.h"
#include "kernels/launch_experts.h"
#include "kernels/launch_products.h"
#include "kernels/launch_rows.h"
#include "kernels/launch_states.h"
#include "kernels/library/gemm_library.h"

namespace fp8kv::FP8KV_GPU {

// Checks a promise of the model; a broken promise is a bug of the program.
inline void require(bool condition, const char* op, const char* what) {
  if (!condition) throw Error(cat(op, ": ", what), "", ErrorKind::device);
}

inline void require_grid(int64_t blocks, const char* op) {
  require(blocks <= std::numeric_limits<int32_t>::max(), op, "too many rows for one step");
}

class GpuBackend final : public Backend {
 public:
  std::string describe() const override { return device_.describe(); }
  std::vector<std::pair<std::string, std::string>> details() const override {
    return {{"driver", device_.driver()}, {"gemm", gemm_.describe()}};
  }
  DType activation_dtype(DType model) const override { return model; }

  Tensor allocate(DType dtype, const Shape& shape) override {
    TensorView view{nullptr, dtype, shape};
    std::shared_ptr<std::byte> memory = device_.allocate(view.bytes());
    view.data = memory.get();
    return {view, std::move(memory)};
  }

  Tensor upload(const ConstTensorView& host, std::shared_ptr<const void> /*keep_alive*/) override {
    Tensor tensor = allocate(host.dtype, host.shape);
    device_.copy_in(tensor.view().data, host.data, host.bytes());
    return tensor;
  }

  void copy_in(const TensorView& to, const ConstTensorView& host) override {
    require(to.bytes() == host.bytes(), "copy_in", "sizes differ");
    device_.copy_in(to.data, host.data, host.bytes());
  }

  void download(const ConstTensorView& from, std::span<std::byte> host) override {
    require(from.bytes() == host.size(), "download", "sizes differ");
    device_.copy_out(host.data(), from.data, host.size());
  }

  Transfers* transfers() override { return &device_.transfers(); }
  std::optional<DeviceMemory> memory() const override { return device_.memory(); }
  uint64_t op_memory(const StepShape& shape) const override;

  void embed(const ConstTensorView& table, const ConstTensorView& ids,
             const TensorView& out) override;
  void arrange(const ConstTensorView& from, Steps steps, const TensorView& to) override;
  void decode_weights(const QuantisedMatrix& matrix, const TensorView& to) override;
  std::optional<QuantisedMatrix> in_place(const QuantisedMatrix& matrix, DType compute,
                                          WeightUse use, std::vector<Tensor>& storage) override;
  void norm(const ConstTensorView& x, const Norm& norm, const TensorView& out) override;
  void linear(const ConstTensorView& x, std::span<const Projection> projections) override;
  void linear_heads(const ConstHeadColumns& x, const ConstTensorView& weights,
                    const HeadColumns& out) override;
  void copy_columns(const ConstHeadColumns& from, const HeadColumns& to, int64_t count) override;
  void rope_append(const RopeAppend& args) override;
  void project_append(const ConstTensorView& x, const InputNorm& entry,
                      const AttentionWeights& weights, const RopeAppend& args) override;
  void attention(const ConstTensorView& q, const PagedKv& kv, const Batch& batch,
                 const AttentionOptions& options, const TensorView& out) override;
  void append_pooled(const PooledAppend& args) override;
  void pool_tokens(const TokenPools& args, const Batch& batch, const TensorView& out) override;
  void choose_tokens(const TokenScores& args, const Batch& batch,
                     const TensorView& chosen) override;
  void causal_conv(const TensorView& x, const CausalConv& conv, const Batch& batch) override;
  void recur(const Recurrence& args, const Batch& batch, const TensorView& out) override;
  void activate(Activation activation, const TensorView& x,
                const std::optional<ConstTensorView>& up) override;
  void clamped_swiglu(const ClampedSwiglu& how, const TensorView& gate,
                      const ConstTensorView& up) override;
  void hidden(const ConstTensorView& x, const InputNorm& entry,
              const HiddenProducts& products) override;
  void route(const ConstTensorView& logits, const Routing& routing, const RouterTerms& terms,
             const Routed& out) override;
  void experts(const ConstTensorView& x, const Routed& routed, const ExpertMatrices& matrices,
               const TensorView& out) override;
  void gate_rows(const TensorView& x, const ConstTensorView& gates) override;
  void add(const TensorView& x, const ConstTensorView& y, float multiplier) override;
  void scale(const TensorView& x, float multiplier, float cap) override;
  void amax(const ConstTensorView& x, const TensorView& out) override;
  void scale_columns(const TensorView& x, const ColumnFactors& factors) override;
  void mix_streams(const ConstTensorView& x, const ConstTensorView& shares, const StreamSum& how,
                   const TensorView& y) override;
  void hyper_shares(const HyperRows& rows, const HyperConfig& config,
                    const HyperShares& out) override;
  void stream_gates(const ConstTensorView& keys, const ConstTensorView& queries,
                    const TensorView& gates) override;
  void match_rms(const TensorView& x, const ConstTensorView& like) override;
  void cut_below(const TensorView& x, float deviations) override;
  void xielu(const TensorView& x, const Xielu& numbers) override;
  void sample(const ConstTensorView& logits, const Sampling& sampling,
              const TensorView& ids) override;

  bool can_record() const override { return device_.can_record(); }
  void begin_recording() override { device_.begin_recording(); }
  Recording end_recording() override { return device_.end_recording(); }
  void replay(const Recording& recording) override { device_.replay(recording); }

 private:
  DecodeScratch decode_scratch(const DecodeSizes& sizes);

  Device device_;
  GemmLibrary gemm_;
  // Partial results of decode attention: grows to the size that any step needs. Outgrown blocks
  // stay, since recorded steps point into them.
  std::shared_ptr<std::byte> scratch_;
  std::vector<std::shared_ptr<std::byte>> outgrown_;
  size_t scratch_bytes_ = 0;
  std::shared_ptr<std::byte> expert_scratch_;
  size_t expert_scratch_bytes_ = 0;
};

// The weights of a norm of x into `out`, checked.
NormWeights norm_weights(const ConstTensorView& x, const Norm& norm, const TensorView& out);

RopeArguments rope_arguments(const RopeAppend& args);

// The `n` rows of a step; errors name `op`.
Rows rows_of_step(const Batch& batch, int64_t n, const char* op);

// Places the working memory of experts() from `memory` on. Returns its size.
size_t place_expert_scratch(ExpertArguments& args, size_t element_bytes, std::byte* memory);

}  // namespace fp8kv::FP8KV_GPU
