// The backend's attention, and the memory it takes beside its arguments.
#include <algorithm>

#include "kernels/backend/gpu_ops.h"

namespace fp8kv::FP8KV_GPU {
namespace {

// See AttentionOptions::chosen.
void place_chosen(const AttentionOptions& options, const PagedKv& kv, int64_t rows,
                  ScoreOptions& scores) {
  const ConstTensorView& chosen = *options.chosen;
  const size_t last = chosen.shape.rank() - 1;
  scores.chosen = chosen.as<int32_t>();
  scores.chosen_count = static_cast<int32_t>(chosen.shape[last]);
  scores.chosen_lists = last == 2 ? static_cast<int32_t>(chosen.shape[1]) : 1;
  scores.chosen_block = static_cast<int32_t>(options.chosen_block);
  scores.chosen_pooled = options.chosen_pooled;
  require(chosen.dtype == DType::i32 && chosen.shape[0] == rows &&
              (last == 1 || scores.chosen_lists == kv.n_kv_heads),
          "attention", "needs chosen tokens of each row, or of each row and KV head");
}

// See AttentionOptions::distances.
void place_distances(const AttentionOptions& options, const ConstTensorView& q,
                     ScoreOptions& scores) {
  const DistanceBias& bias = *options.distances;
  require(bias.states.dtype == q.dtype && is_compute_dtype(bias.bank.dtype) &&
              bias.states.shape == Shape{q.shape[0], q.shape[1], bias.dim()} &&
              (!bias.growth || bias.growth->dtype == DType::f32) && !options.bias &&
              !options.chosen,
          "attention", "needs states of each head for biases of distances, and no other bias");
  scores.distance_states = bias.states.data;
  scores.distance_bank = bias.bank.data;
  scores.bank_dtype = bias.bank.dtype;
  if (bias.growth) scores.distance_growth = bias.growth->as<float>();
  scores.distance_dim = static_cast<int32_t>(bias.dim());
  scores.distance_extent = static_cast<int32_t>(bias.extent());
}

void place_bias(const ConstTensorView& bias, int64_t n_heads, ScoreOptions& scores) {
  require(bias.dtype == DType::f32 && bias.shape[0] == n_heads, "attention",
          "needs a bias in f32 for every head");
  scores.bias = bias.as<float>();
  scores.positions = bias.shape[1];
}

void place_sinks(const ConstTensorView& sinks, int64_t n_heads, ScoreOptions& scores) {
  require(is_compute_dtype(sinks.dtype) && sinks.shape == Shape{n_heads}, "attention",
          "needs a sink of f32, f16 or bf16 for every head");
  scores.sinks = sinks.data;
  scores.sinks_dtype = sinks.dtype;
}

void place_pool(const AttentionOptions& options, const PagedKv& kv, ScoreOptions& scores) {
  require(kv.n_kv_heads == 1 && kv.head_dim == kv.v_dim() && options.chunk == 0 &&
              options.cap == 0.0f && !options.bias && !options.distances,
          "attention", "needs one KV head for rows that pool tokens");
  require(kv.in_elements(), "attention",
          "needs one type for K and V where rows pool tokens: --device cpu takes two");
  scores.pool = static_cast<int32_t>(options.pool);
}

size_t scratch_bytes(const DecodeSizes& sizes) {
  return (sizes.partials + sizes.states) * sizeof(float);
}

}  // namespace

void GpuBackend::attention(const ConstTensorView& q, const PagedKv& kv, const Batch& batch,
                           const AttentionOptions& options, const TensorView& out) {
  if (q.shape[0] == 0) return;
  require(q.dtype == out.dtype && is_compute_dtype(q.dtype), "attention",
          "needs one type of f32, f16 and bf16");
  require(out.shape == Shape{q.shape[0], q.shape[1], kv.v_dim()} &&
              q.shape[1] % kv.n_kv_heads == 0 && q.shape[2] == kv.head_dim,
          "attention", "shapes do not fit");
  require(kv.head_dim <= kMostHeadDim || kv.v_in_k > 0, "attention",
          "a head has more than 512 elements");
  require(kv.q_scale == 0, "attention", "in FP8 it is computed on the CPU alone: --device cpu");
  AttentionArguments arguments;
  arguments.q = q.data;
  arguments.out = out.data;
  arguments.rows = rows_of_step(batch, q.shape[0], "attention");
  arguments.kv = kv;
  arguments.n_heads = static_cast<int32_t>(q.shape[1]);
  arguments.v_dim = kv.v_dim();
  arguments.scale = options.scale;
  arguments.window = options.window;
  ScoreOptions& scores = arguments.scores;
  // A chunk as long as this holds all positions.
  scores.chunk = static_cast<int32_t>(std::min<int64_t>(options.chunk, INT32_MAX));
  scores.cap = options.cap;
  if (options.bias) place_bias(*options.bias, q.shape[1], scores);
  if (options.sinks) place_sinks(*options.sinks, q.shape[1], scores);
  if (options.distances) place_distances(options, q, scores);
  if (options.chosen) place_chosen(options, kv, q.shape[0], scores);
  if (options.pool > 0) {
    place_pool(options, kv, scores);
    return attention_pools(device_.stream(), q.dtype, arguments);
  }
  if (kv.v_in_k > 0) {
    const bool same_scores =
        options.chunk == 0 && options.cap == 0.0f && !options.bias && !options.distances;
    require(same_scores && options.window == 0 && kv.n_kv_heads == 1 && kv.v_in_k <= kMostHeadDim,
            "attention", "needs one latent of at most 512 elements, without a cap, bias or window");
  }
  require(!kv.rotated() || kv.head_dim <= kMostRotatedDim, "attention",
          "a head of a rotated cache has more than 256 elements");
  const bool fast = takes_fast_attention(q.dtype, arguments);
  const bool few = takes_decode(arguments, step_size().rows_per_sequence);
  if (fast && few) {
    attention_decode(device_.stream(), q.dtype, arguments, decode_scratch(decode_sizes(arguments)),
                     device_.multiprocessors());
  } else if (fast && takes_prefill(arguments)) {
    attention_prefill(device_.stream(), q.dtype, arguments);
  } else if (takes_wide(q.dtype, arguments)) {
    attention_wide(device_.stream(), q.dtype, arguments,
                   few ? decode_scratch(wide_sizes(arguments)) : DecodeScratch());
  } else {
    attention_any(device_.stream(), q.dtype, arguments);
  }
}

uint64_t GpuBackend::op_memory(const StepShape& shape) const {
  AttentionArguments arguments;
  arguments.rows.n = static_cast<int32_t>(shape.rows);
  arguments.rows.n_seqs = static_cast<int32_t>(shape.sequences);
  arguments.rows.max_pages = static_cast<int32_t>(shape.max_pages);
  arguments.kv.page_size = shape.page_size;
  arguments.kv.n_kv_heads = shape.n_kv_heads;
  arguments.kv.head_dim = shape.head_dim;
  arguments.n_heads = shape.n_heads;
  arguments.v_dim = shape.head_dim;
  uint64_t bytes = 0;
  if (takes_decode(arguments, shape.computed_as.rows_per_sequence)) {
    bytes += scratch_bytes(wide_sizes(arguments));
    if (!shape.v_in_k) bytes = std::max<uint64_t>(bytes, scratch_bytes(decode_sizes(arguments)));
  }
  if (shape.experts > 0) {
    ExpertArguments of_experts;
    of_experts.dim = shape.dim;
    of_experts.hidden_dim = shape.expert_hidden_dim;
    of_experts.sent = shape.rows * shape.experts_per_token;
    of_experts.experts = static_cast<int32_t>(shape.experts);
    bytes += place_expert_scratch(of_experts, dtype_bytes(shape.activation), nullptr);
  }
  return bytes;
}

DecodeScratch GpuBackend::decode_scratch(const DecodeSizes& sizes) {
  const size_t bytes = scratch_bytes(sizes);
  if (bytes > scratch_bytes_) {
    if (scratch_) outgrown_.push_back(scratch_);
    scratch_ = device_.allocate(bytes);
    scratch_bytes_ = bytes;
  }
  auto* partials = reinterpret_cast<float*>(scratch_.get());
  return {partials, partials + sizes.partials};
}

}  // namespace fp8kv::FP8KV_GPU
