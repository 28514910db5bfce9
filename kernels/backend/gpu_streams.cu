// The backend's ops on rows of several residual streams.
#include "kernels/backend/gpu_ops.h"

namespace fp8kv::FP8KV_GPU {
namespace {

Matrix matrix_of(const TensorView& x) {
  return {x.data, x.dtype, x.shape[0], x.shape[1]};
}

}  // namespace

void GpuBackend::scale_columns(const TensorView& x, const ConstTensorView& weight) {
  if (x.shape.elements() == 0) return;
  require(
      is_compute_dtype(x.dtype) && weight.dtype == x.dtype && weight.shape.elements() == x.shape[1],
      "scale_columns", "needs a weight for each column, of one type with x");
  require_grid(x.shape.elements(), "scale_columns");
  FP8KV_GPU::scale_columns(device_.stream(), matrix_of(x), weight.data);
}

void GpuBackend::mix_streams(const ConstTensorView& x, const ConstTensorView& shares, float more,
                             const TensorView& y) {
  if (x.shape.elements() == 0) return;
  const StreamMix mix{x.shape[0], x.shape[1], y.shape[1], x.shape[2]};
  require(x.dtype == y.dtype && is_compute_dtype(x.dtype) && shares.dtype == DType::f32,
          "mix_streams", "needs one type of f32, f16 and bf16, and shares in f32");
  require(y.shape[0] == mix.rows && y.shape[2] == mix.dim && mix.from <= kMostStreams &&
              mix.to <= kMostStreams && shares.shape == Shape{mix.rows, mix.to * mix.from},
          "mix_streams", "shapes do not fit");
  require_grid(x.shape.elements(), "mix_streams");
  FP8KV_GPU::mix_streams(device_.stream(), x.dtype, x.data, shares.as<const float>(), more, y.data,
                         mix);
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
