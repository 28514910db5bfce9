#include <limits>

#include "core/numbers/sampling.h"
#include "kernels/backend/gpu_backend.h"
#include "kernels/backend/gpu_ops.h"

namespace fp8kv::FP8KV_GPU {

Rows rows_of_step(const Batch& batch, int64_t n, const char* op) {
  require(n <= std::numeric_limits<int32_t>::max(), op, "too many rows for one step");
  Rows rows;
  rows.positions = batch.positions.as<const int32_t>();
  rows.slots = batch.slots.as<const int32_t>();
  rows.indptr = batch.indptr.as<const int32_t>();
  rows.page_table = batch.page_table.as<const int32_t>();
  rows.n = static_cast<int32_t>(n);
  rows.n_seqs = static_cast<int32_t>(batch.indptr.shape[0] - 1);
  rows.max_pages = static_cast<int32_t>(batch.page_table.shape[1]);
  return rows;
}

void GpuBackend::embed(const ConstTensorView& table, const ConstTensorView& ids,
                       const TensorView& out) {
  const int64_t n = out.shape[0], dim = out.shape[1];
  if (n == 0) return;
  require(is_compute_dtype(table.dtype) && is_compute_dtype(out.dtype), "embed",
          "needs f32, f16 or bf16");
  require(ids.shape[0] == n && table.shape[1] == dim, "embed", "shapes do not fit");
  require_grid(n, "embed");
  FP8KV_GPU::embed(device_.stream(), {table.data, table.dtype, table.shape[0], dim},
                   ids.as<const int32_t>(), {out.data, out.dtype, n, dim});
}

void GpuBackend::arrange(const ConstTensorView& from, Steps steps, const TensorView& to) {
  if (to.shape.elements() == 0) return;
  require(from.dtype == to.dtype && is_compute_dtype(to.dtype), "arrange",
          "needs one type of f32, f16 and bf16");
  const int64_t last = (to.shape[0] - 1) * steps.row + (to.shape[1] - 1) * steps.column;
  require(last < from.shape.elements(), "arrange", "shapes do not fit");
  FP8KV_GPU::arrange(device_.stream(), from.data, steps.row, steps.column,
                     {to.data, to.dtype, to.shape[0], to.shape[1]});
}

void GpuBackend::decode_weights(const QuantisedMatrix& matrix, const TensorView& to) {
  if (to.shape.elements() == 0) return;
  require(is_compute_dtype(to.dtype) && to.shape == Shape{matrix.rows, matrix.columns},
          "decode_weights", "needs f32, f16 or bf16 of the matrix's shape");
  FP8KV_GPU::decode_weights(device_.stream(), matrix, to.dtype, to.data);
}

NormWeights norm_weights(const ConstTensorView& x, const Norm& norm, const TensorView& out) {
  const bool f32_weight = norm.weight.dtype == DType::f32;
  require((x.dtype == norm.weight.dtype || f32_weight) && x.dtype == out.dtype &&
              is_compute_dtype(x.dtype) && (!norm.bias || norm.bias->dtype == norm.weight.dtype),
          "norm", "needs one type of f32, f16 and bf16, or f32 for the weights");
  const int64_t kinds = norm.weight.shape.elements() / x.shape[1];
  require(x.shape == out.shape && norm.weight.shape.elements() == kinds * x.shape[1] &&
              (!norm.bias || norm.bias->shape.elements() == x.shape[1]),
          "norm", "shapes do not fit");
  require(!norm.bias || norm.kind == NormKind::layer, "norm", "has a bias that its kind has not");
  require_grid(x.shape[0], "norm");
  return {.weight = norm.weight.data,
          .bias = norm.bias ? norm.bias->data : nullptr,
          .weight_offset = norm.weight_offset,
          .eps = norm.eps,
          .weight_f32 = f32_weight && x.dtype != DType::f32,
          .kinds = kinds};
}

void GpuBackend::norm(const ConstTensorView& x, const Norm& norm, const TensorView& out) {
  if (x.shape[0] == 0) return;
  const NormWeights weights = norm_weights(x, norm, out);
  const ConstMatrix rows{x.data, x.dtype, x.shape[0], x.shape[1]};
  if (norm.kind == NormKind::rms) {
    FP8KV_GPU::rmsnorm(device_.stream(), rows, weights, out.data);
  } else {
    FP8KV_GPU::layernorm(device_.stream(), rows, weights, out.data);
  }
}

RopeArguments rope_arguments(const RopeAppend& args) {
  const int64_t n = args.q.shape[0];
  require(args.q.dtype == args.k.dtype && args.q.dtype == args.v.dtype &&
              is_compute_dtype(args.q.dtype) && is_compute_dtype(args.round_to),
          "rope_append", "needs one type of f32, f16 and bf16");
  require(!args.kv.toward_zero, "rope_append",
          "rounding towards zero is done on the CPU alone: --device cpu");
  const bool appends = args.k.shape[1] > 0;
  const int64_t kv_heads = appends ? args.kv.n_kv_heads : 0;
  const Shape k_shape{n, kv_heads, args.kv.head_dim - args.kv.v_in_k};
  const Shape v_shape{n, kv_heads, args.kv.v_dim()};
  require(args.k.shape == k_shape && args.v.shape == v_shape && (appends || !args.magnitudes) &&
              (!appends || args.q.shape[1] % args.kv.n_kv_heads == 0) &&
              args.q.shape[2] == args.kv.head_dim && args.kv.head_dim % 2 == 0 &&
              args.rope.shape[1] % 2 == 0 && args.rope.shape[1] <= args.kv.head_dim &&
              (!args.q_rope || args.q_rope->shape == args.rope.shape),
          "rope_append", "shapes do not fit");
  require(
      args.kv.k_format != KvFormat::ds_mla || (kv_heads <= 1 && args.kv.v_in_k % kLatentBlock == 0),
      "rope_append", "needs one KV head, and a latent of whole blocks");
  RopeArguments arguments;
  arguments.q = args.q.data;
  arguments.k = args.k.data;
  arguments.v = args.v.data;
  arguments.rope = args.rope.as<const float>();
  arguments.q_rope = args.q_rope ? args.q_rope->as<const float>() : arguments.rope;
  if (args.magnitudes) arguments.magnitudes = args.magnitudes->as<uint64_t>();
  arguments.rows = rows_of_step(args.batch, n, "rope_append");
  arguments.kv = args.kv;
  arguments.kv.n_kv_heads = static_cast<int32_t>(args.k.shape[1]);
  arguments.n_heads = static_cast<int32_t>(args.q.shape[1]);
  arguments.group = arguments.n_heads / (appends ? arguments.kv.n_kv_heads : 1);
  arguments.rotary_dim = static_cast<int32_t>(args.rope.shape[1]);
  arguments.k_dim = static_cast<int32_t>(k_shape[2]);
  arguments.v_dim = static_cast<int32_t>(v_shape[2]);
  arguments.pairs = args.pairs;
  arguments.round_to = args.round_to;
  return arguments;
}

void GpuBackend::linear_heads(const ConstHeadColumns& x, const ConstTensorView& weights,
                              const HeadColumns& out) {
  if (x.rows.shape.elements() == 0) return;
  HeadProducts args{.x = x.rows.data, .weights = weights.data, .out = out.rows.data};
  args.n = x.rows.shape[0];
  args.n_heads = weights.shape[0];
  args.out_dim = weights.shape[1];
  args.in_dim = weights.shape[2];
  args.x_width = x.rows.shape[2];
  args.x_first = x.first;
  args.out_width = out.rows.shape[2];
  args.out_first = out.first;
  require(x.rows.dtype == weights.dtype && x.rows.dtype == out.rows.dtype &&
              is_compute_dtype(weights.dtype),
          "linear_heads", "needs one type of f32, f16 and bf16");
  require(x.rows.shape[1] == args.n_heads && out.rows.shape[1] == args.n_heads &&
              out.rows.shape[0] == args.n && args.x_first + args.in_dim <= args.x_width &&
              args.out_first + args.out_dim <= args.out_width,
          "linear_heads", "shapes do not fit");
  FP8KV_GPU::linear_heads(device_.stream(), weights.dtype, args);
}

void GpuBackend::copy_columns(const ConstHeadColumns& from, const HeadColumns& to, int64_t count) {
  if (from.rows.shape.elements() == 0) return;
  require(from.rows.dtype == to.rows.dtype && is_compute_dtype(to.rows.dtype), "copy_columns",
          "needs one type of f32, f16 and bf16");
  require(from.rows.shape[0] == to.rows.shape[0] && from.rows.shape[1] == to.rows.shape[1] &&
              from.first + count <= from.rows.shape[2] && to.first + count <= to.rows.shape[2],
          "copy_columns", "shapes do not fit");
  const auto element = static_cast<int64_t>(dtype_bytes(to.rows.dtype));
  FP8KV_GPU::copy_columns(device_.stream(), to.rows.dtype,
                          {.from = from.rows.data + from.first * element,
                           .to = to.rows.data + to.first * element,
                           .from_width = from.rows.shape[2],
                           .to_width = to.rows.shape[2],
                           .rows = from.rows.shape[0] * from.rows.shape[1],
                           .columns = count});
}

void GpuBackend::rope_append(const RopeAppend& args) {
  if (args.q.shape[0] == 0) return;
  FP8KV_GPU::rope_append(device_.stream(), args.q.dtype, rope_arguments(args));
}

// REQUIRES two tensors of the same shape and type.
static void require_alike(const TensorView& x, const ConstTensorView& y, const char* op) {
  require(x.dtype == y.dtype && is_compute_dtype(x.dtype) && x.shape == y.shape, op,
          "needs two of one shape and type, f32, f16 or bf16");
}

static Elements elements_of(const TensorView& x) {
  return {x.data, x.dtype, x.shape.elements()};
}

void GpuBackend::activate(Activation activation, const TensorView& x,
                          const std::optional<ConstTensorView>& up) {
  if (x.shape.elements() == 0) return;
  require_alike(x, up ? *up : ConstTensorView(x), "activate");
  FP8KV_GPU::activate(device_.stream(), activation, elements_of(x), up ? up->data : nullptr);
}

void GpuBackend::clamped_swiglu(const ClampedSwiglu& how, const TensorView& gate,
                                const ConstTensorView& up) {
  if (gate.shape.elements() == 0) return;
  require_alike(gate, up, "clamped_swiglu");
  FP8KV_GPU::clamped_swiglu(device_.stream(), how, elements_of(gate), up.data);
}

void GpuBackend::gate_rows(const TensorView& x, const ConstTensorView& gates) {
  if (x.shape.elements() == 0) return;
  require(is_compute_dtype(x.dtype) && gates.dtype == DType::f32 &&
              gates.shape.elements() == x.shape[0],
          "gate_rows", "needs an f32 gate for each row of f32, f16 or bf16");
  require_grid(x.shape.elements(), "gate_rows");
  FP8KV_GPU::gate_rows(device_.stream(), {x.data, x.dtype, x.shape[0], x.shape[1]},
                       gates.as<const float>());
}

void GpuBackend::add(const TensorView& x, const ConstTensorView& y, float multiplier) {
  if (x.shape.elements() == 0) return;
  require_alike(x, y, "add");
  FP8KV_GPU::add(device_.stream(), elements_of(x), y.data, multiplier);
}

void GpuBackend::scale(const TensorView& x, float multiplier, float cap) {
  if (x.shape.elements() == 0) return;
  require(is_compute_dtype(x.dtype), "scale", "needs f32, f16 or bf16");
  FP8KV_GPU::scale(device_.stream(), elements_of(x), multiplier, cap);
}

void GpuBackend::xielu(const TensorView& x, const Xielu& numbers) {
  if (x.shape.elements() == 0) return;
  require(is_compute_dtype(x.dtype), "xielu", "needs f32, f16 or bf16");
  FP8KV_GPU::xielu(device_.stream(), elements_of(x), numbers);
}

void GpuBackend::amax(const ConstTensorView& x, const TensorView& out) {
  if (x.shape.elements() == 0) return;
  require(is_compute_dtype(x.dtype) && out.dtype == DType::u64, "amax",
          "needs f32, f16 or bf16, and one u64");
  FP8KV_GPU::amax(device_.stream(), {x.data, x.dtype, x.shape.elements()}, out.as<uint64_t>());
}

void GpuBackend::sample(const ConstTensorView& logits, const Sampling& sampling,
                        const TensorView& ids) {
  const int64_t n = logits.shape[0];
  if (n == 0) return;
  require(logits.dtype == DType::f32, "sample", "needs f32");
  require(logits.shape[1] > 0 && logits.shape[1] <= kMaxSampledTokens, "sample",
          "too many tokens to draw from");
  require(ids.shape.elements() == n && sampling.seed.shape.elements() == n &&
              sampling.position.shape.elements() == n,
          "sample", "shapes do not fit");
  require_grid(n, "sample");
  SampleArguments arguments;
  arguments.logits = logits.as<const float>();
  arguments.temperature = sampling.temperature.as<const float>();
  arguments.top_k = sampling.top_k.as<const int32_t>();
  arguments.top_p = sampling.top_p.as<const float>();
  arguments.seed = sampling.seed.as<const uint64_t>();
  arguments.position = sampling.position.as<const int32_t>();
  arguments.ids = ids.as<int32_t>();
  arguments.vocab_size = static_cast<int32_t>(logits.shape[1]);
  FP8KV_GPU::sample(device_.stream(), n, arguments);
}

std::unique_ptr<Backend> make_gpu_backend() {
  return std::make_unique<GpuBackend>();
}

}  // namespace fp8kv::FP8KV_GPU
