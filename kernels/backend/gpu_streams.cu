// The backend's ops on rows of several residual streams.
#include "kernels/backend/gpu_ops.h"

namespace fp8kv::FP8KV_GPU {
namespace {

Matrix matrix_of(const TensorView& x) {
  return {x.data, x.dtype, x.shape[0], x.shape[1]};
}

}  // namespace

void GpuBackend::scale_columns(const TensorView& x, const ColumnFactors& factors) {
  if (x.shape.elements() == 0) return;
  const ConstTensorView& weight = factors.weight;
  require(is_compute_dtype(x.dtype) && (weight.dtype == x.dtype || weight.dtype == DType::f32) &&
              weight.shape.elements() == x.shape[1],
          "scale_columns", "needs a weight for each column, in f32 or of one type with x");
  require_grid(x.shape.elements(), "scale_columns");
  FP8KV_GPU::scale_columns(device_.stream(), matrix_of(x),
                           {weight.data, factors.offset, weight.dtype == DType::f32});
}

void GpuBackend::mix_streams(const ConstTensorView& x, const ConstTensorView& shares,
                             const StreamSum& how, const TensorView& y) {
  if (x.shape.elements() == 0) return;
  const StreamMix mix{x.shape[0], x.shape[1], y.shape[1], x.shape[2]};
  require(x.dtype == y.dtype && is_compute_dtype(x.dtype) && shares.dtype == DType::f32,
          "mix_streams", "needs one type of f32, f16 and bf16, and shares in f32");
  require(y.shape[0] == mix.rows && y.shape[2] == mix.dim && mix.from <= kMostMixed &&
              mix.to <= kMostMixed && shares.shape == Shape{mix.rows, mix.to * mix.from},
          "mix_streams", "shapes do not fit");
  require_grid(x.shape.elements(), "mix_streams");
  FP8KV_GPU::mix_streams(device_.stream(), {x.dtype, x.data, shares.as<const float>(), y.data}, how,
                         mix);
}

void GpuBackend::hyper_shares(const HyperRows& rows, const HyperConfig& config,
                              const HyperShares& out) {
  const int64_t n = rows.x.shape[0], count = config.count;
  if (n == 0) return;
  const int64_t width = rows.products.shape[1];
  require(is_compute_dtype(rows.x.dtype) && is_compute_dtype(rows.scale.dtype) &&
              is_compute_dtype(rows.base.dtype) && rows.products.dtype == DType::f32,
          "hyper_shares",
          "needs rows, a scale and a base of f32, f16 or bf16, and products in f32");
  require(count >= 1 && count <= kMostStreams && rows.x.shape[1] % count == 0 &&
              rows.base.shape.elements() == width && out.read.shape == Shape{n, count} &&
              width == (out.write ? config.width() : count) &&
              out.mix.has_value() == (out.write && config.rounds > 0),
          "hyper_shares", "shapes do not fit");
  require_grid(n, "hyper_shares");
  HyperArguments args;
  args.x = rows.x.data;
  args.products = rows.products.as<const float>();
  args.scale = rows.scale.data;
  args.base = rows.base.data;
  args.read = out.read.as<float>();
  if (out.write) args.write = out.write->as<float>();
  args.scale_dtype = rows.scale.dtype;
  args.base_dtype = rows.base.dtype;
  args.count = static_cast<int32_t>(count);
  args.dim = rows.x.shape[1] / count;
  args.norm_eps = rows.norm_eps;
  args.eps = static_cast<float>(config.eps);
  args.most_written = static_cast<float>(config.most_written);
  args.eps_written = config.eps_written ? args.eps : 0.0f;
  if (out.mix) args.mix = out.mix->as<float>();
  args.rounds = static_cast<int32_t>(config.rounds);
  FP8KV_GPU::hyper_shares(device_.stream(), rows.x.dtype, n, args);
}

void GpuBackend::stream_gates(const ConstTensorView& keys, const ConstTensorView& queries,
                              const TensorView& gates) {
  if (gates.shape.elements() == 0) return;
  const int64_t rows = keys.shape[0] * keys.shape[1];
  require(keys.dtype == queries.dtype && is_compute_dtype(keys.dtype) &&
              keys.shape == queries.shape && gates.dtype == DType::f32 &&
              gates.shape == Shape{keys.shape[0], keys.shape[1]},
          "stream_gates", "needs two of one shape and type, f32, f16 or bf16, and gates in f32");
  require_grid(rows, "stream_gates");
  FP8KV_GPU::stream_gates(device_.stream(), {keys.data, keys.dtype, rows, keys.shape[2]},
                          queries.data, gates.as<float>());
}

void GpuBackend::match_rms(const TensorView& x, const ConstTensorView& like) {
  if (x.shape.elements() == 0) return;
  require(x.dtype == like.dtype && is_compute_dtype(x.dtype) && x.shape == like.shape, "match_rms",
          "needs two of one shape and type, f32, f16 or bf16");
  require_grid(x.shape[0], "match_rms");
  FP8KV_GPU::match_rms(device_.stream(), matrix_of(x), like.data);
}

void GpuBackend::cut_below(const TensorView& x, float deviations) {
  if (x.shape.elements() == 0) return;
  require(is_compute_dtype(x.dtype), "cut_below", "needs f32, f16 or bf16");
  require_grid(x.shape[0], "cut_below");
  FP8KV_GPU::cut_below(device_.stream(), matrix_of(x), deviations);
}

}  // namespace fp8kv::FP8KV_GPU
