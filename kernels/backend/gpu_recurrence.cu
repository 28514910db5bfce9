// The backend's ops for layers that keep a state.
#include "kernels/backend/gpu_ops.h"

namespace fp8kv::FP8KV_GPU {
namespace {

// The most blocks of a launch in its second and third direction.
constexpr int64_t kMostAcross = 65535;

StateRows state_rows(const Batch& batch) {
  StateRows rows;
  rows.positions = batch.positions.as<const int32_t>();
  rows.indptr = batch.indptr.as<const int32_t>();
  if (batch.states.data != nullptr) rows.slots = batch.states.as<const int32_t>();
  rows.n_seqs = static_cast<int32_t>(batch.indptr.shape[0] - 1);
  return rows;
}

// Whether steps, rates and skips are those of heads, of rows or of columns.
bool fits_steps(const Recurrence& args) {
  const int64_t heads = args.v.shape[1], steps = args.step.shape[1], k_dim = args.k.shape[2];
  const int64_t rates = args.a_log.shape.elements();
  const int64_t skips = args.skip ? args.skip->shape.elements() : -1;
  if (args.by_element) {
    const bool plain = args.update == StateUpdate::add && !args.unit && !args.strength &&
                       args.least_log_decay == 0.0f;
    return plain && steps == heads * args.v.shape[2] && rates == steps * k_dim &&
           k_dim <= kMostRatedRows && (skips < 0 || skips == steps);
  }
  const bool by_row = steps == heads * k_dim && heads == args.k.shape[1];
  return rates == heads && (skips < 0 || skips == heads) && (steps == heads || by_row) &&
         (args.least_log_decay == 0.0f || (steps != heads && args.strength));
}

}  // namespace

void GpuBackend::causal_conv(const TensorView& x, const CausalConv& conv, const Batch& batch) {
  if (x.shape.elements() == 0) return;
  const int64_t channels = x.shape[1], width = conv.weight.shape.elements() / channels;
  require(is_compute_dtype(x.dtype) &&
              (conv.weight.dtype == x.dtype || conv.weight.dtype == DType::f32) &&
              (!conv.bias || conv.bias->dtype == x.dtype) &&
              (!conv.in_gate || conv.in_gate->dtype == x.dtype) &&
              (!conv.out_gate || conv.out_gate->dtype == x.dtype),
          "causal_conv", "needs one type of f32, f16 and bf16; weights may be f32");
  require(conv.weight.shape.elements() == channels * width && width >= 1 && conv.dilation >= 1 &&
              conv.before() <= kMostConvBefore &&
              (!conv.bias || conv.bias->shape.elements() == channels) &&
              (!conv.in_gate || conv.in_gate->shape == x.shape) &&
              (!conv.out_gate || conv.out_gate->shape == x.shape),
          "causal_conv", "shapes do not fit");
  ConvArguments arguments;
  arguments.x = x.data;
  arguments.weight = conv.weight.data;
  if (conv.bias) arguments.bias = conv.bias->data;
  arguments.state = conv.state.as<float>();
  if (conv.in_gate) arguments.in_gate = conv.in_gate->data;
  if (conv.out_gate) arguments.out_gate = conv.out_gate->data;
  arguments.weight_dtype = conv.weight.dtype;
  arguments.silu = conv.silu;
  arguments.adds_input = conv.adds_input;
  arguments.rows = state_rows(batch);
  arguments.channels = channels;
  arguments.width = static_cast<int32_t>(width);
  arguments.dilation = static_cast<int32_t>(conv.dilation);
  require_grid(channels * arguments.rows.n_seqs, "causal_conv");
  FP8KV_GPU::causal_conv(device_.stream(), x.dtype, arguments);
}

void GpuBackend::pool_tokens(const TokenPools& args, const Batch& batch, const TensorView& out) {
  if (out.shape.elements() == 0) return;
  const Shape tokens{out.shape[0], args.parts * out.shape[1]};
  require(is_compute_dtype(out.dtype) && args.rows.dtype == out.dtype &&
              args.gates.dtype == out.dtype && is_compute_dtype(args.bias.dtype),
          "pool_tokens", "needs one type of f32, f16 and bf16, and a bias of such a type");
  require(args.rows.shape == tokens && args.gates.shape == tokens && args.block > 1 &&
              (args.parts == 1 || args.parts == 2) &&
              args.bias.shape.elements() == args.block * tokens[1],
          "pool_tokens", "shapes do not fit");
  PoolArguments arguments;
  arguments.values = args.rows.data;
  arguments.gates = args.gates.data;
  arguments.bias = args.bias.data;
  arguments.out = out.data;
  arguments.state = args.state.as<float>();
  arguments.rows = state_rows(batch);
  arguments.dim = out.shape[1];
  arguments.block = static_cast<int32_t>(args.block);
  arguments.parts = static_cast<int32_t>(args.parts);
  arguments.bias_dtype = args.bias.dtype;
  require_grid(arguments.dim * arguments.rows.n_seqs, "pool_tokens");
  FP8KV_GPU::pool_tokens(device_.stream(), out.dtype, arguments);
}

void GpuBackend::recur(const Recurrence& args, const Batch& batch, const TensorView& out) {
  if (out.shape.elements() == 0) return;
  require(is_compute_dtype(args.q.dtype) && args.k.dtype == args.q.dtype &&
              args.v.dtype == args.q.dtype && out.dtype == args.q.dtype &&
              args.step.dtype == DType::f32 &&
              (!args.strength || args.strength->dtype == DType::f32) &&
              is_compute_dtype(args.a_log.dtype) && is_compute_dtype(args.step_bias.dtype) &&
              (!args.skip || is_compute_dtype(args.skip->dtype)),
          "recur", "needs one type of f32, f16 and bf16, and f32 for steps and strengths");
  const int64_t steps = args.step.shape[1];
  RecurrenceArguments arguments;
  arguments.rows = state_rows(batch);
  require(args.k.shape == args.q.shape && args.v.shape == out.shape &&
              args.v.shape[1] % args.k.shape[1] == 0 && args.k.shape[2] <= kMostStateRows &&
              args.step_bias.shape.elements() == steps && fits_steps(args) &&
              args.v.shape[1] <= kMostAcross && arguments.rows.n_seqs <= kMostAcross,
          "recur", "shapes do not fit");
  arguments.q = args.q.data;
  arguments.k = args.k.data;
  arguments.v = args.v.data;
  arguments.step = args.step.as<const float>();
  if (args.strength) arguments.strength = args.strength->as<const float>();
  arguments.a_log = args.a_log.data;
  arguments.a_log_dtype = args.a_log.dtype;
  arguments.step_bias = args.step_bias.data;
  arguments.step_bias_dtype = args.step_bias.dtype;
  if (args.skip) {
    arguments.skip = args.skip->data;
    arguments.skip_dtype = args.skip->dtype;
  }
  arguments.least_step = args.least_step;
  arguments.most_step = args.most_step;
  arguments.most_strength = args.most_strength;
  arguments.least_log_decay = args.least_log_decay;
  arguments.by_element = args.by_element;
  arguments.by_row = !args.by_element && steps != args.v.shape[1];
  arguments.state = args.state.as<float>();
  arguments.out = out.data;
  arguments.update = args.update;
  arguments.unit = args.unit;
  arguments.k_heads = static_cast<int32_t>(args.k.shape[1]);
  arguments.k_dim = static_cast<int32_t>(args.k.shape[2]);
  arguments.v_heads = static_cast<int32_t>(args.v.shape[1]);
  arguments.v_dim = static_cast<int32_t>(args.v.shape[2]);
  FP8KV_GPU::recur(device_.stream(), args.q.dtype, arguments);
}

}  // namespace fp8kv::FP8KV_GPU
