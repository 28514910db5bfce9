// The backend's ops of sparse indexers.
#include "kernels/backend/gpu_backend.h"
#include "kernels/backend/gpu_ops.h"

namespace fp8kv::FP8KV_GPU {

void GpuBackend::append_pooled(const PooledAppend& args) {
  const int64_t n = args.k.shape[0];
  if (n == 0) return;
  require(is_compute_dtype(args.k.dtype) && kv_elements(args.keys.k_format) == args.k.dtype &&
              args.round_to == args.k.dtype && is_compute_dtype(args.norm.weight.dtype) &&
              args.rope.dtype == DType::f32,
          "append_pooled", "needs keys of the cache's type");
  require(args.keys.n_kv_heads == 1 && args.k.shape[1] == args.keys.head_dim &&
              args.keys.head_dim <= kMostHeadDim && args.block > 1 &&
              args.norm.weight.shape.elements() == args.keys.head_dim &&
              args.rope.shape[1] <= args.keys.head_dim,
          "append_pooled", "shapes do not fit");
  PooledArguments arguments;
  arguments.k = args.k.data;
  arguments.weight = args.norm.weight.data;
  arguments.weight_dtype = args.norm.weight.dtype;
  arguments.weight_offset = args.norm.weight_offset;
  arguments.eps = args.norm.eps;
  arguments.rope = args.rope.as<const float>();
  arguments.rotary_dim = static_cast<int32_t>(args.rope.shape[1]);
  arguments.rows = rows_of_step(args.batch, n, "append_pooled");
  arguments.keys = args.keys;
  arguments.block = static_cast<int32_t>(args.block);
  FP8KV_GPU::append_pooled(device_.stream(), args.k.dtype, arguments);
}

void GpuBackend::choose_tokens(const TokenScores& args, const Batch& batch,
                               const TensorView& chosen) {
  const int64_t n = args.q.shape[0], heads = args.q.shape[1];
  if (n == 0) return;
  const std::optional<DType> element = kv_elements(args.keys.k_format);
  require(is_compute_dtype(args.q.dtype) && element == args.q.dtype &&
              args.scores.dtype == DType::f32 && chosen.dtype == DType::i32,
          "choose_tokens", "needs Q and keys of one type");
  require(args.keys.n_kv_heads == 1 && args.q.shape[2] == args.keys.head_dim &&
              args.keys.head_dim <= kMostHeadDim && chosen.shape[0] == n &&
              args.scores.shape[0] > 0,
          "choose_tokens", "shapes do not fit");
  ChoiceArguments arguments;
  arguments.q = args.q.data;
  if (args.weights) {
    require(args.weights->dtype == DType::f32 && args.weights->shape == Shape{n, heads} &&
                (args.block == 1 || args.pooled),
            "choose_tokens",
            "needs weights in f32 for every head, and single tokens or pooled keys");
    arguments.weights = args.weights->as<float>();
  }
  const int64_t lists = args.weights ? 1 : heads;
  arguments.scores = args.scores.as<float>();
  arguments.chosen = chosen.as<int32_t>();
  arguments.rows = rows_of_step(batch, n, "choose_tokens");
  arguments.keys = args.keys;
  arguments.scored_rows = args.scores.shape[0];
  arguments.positions = args.scores.shape[1] / lists;
  arguments.n_heads = static_cast<int32_t>(heads);
  arguments.lists = static_cast<int32_t>(lists);
  arguments.count = static_cast<int32_t>(chosen.shape.elements() / (n * lists));
  arguments.block = static_cast<int32_t>(args.block);
  arguments.local_blocks = static_cast<int32_t>(args.local_blocks);
  if (args.pooled) arguments.key_step = arguments.block;
  arguments.scale = args.scale;
  FP8KV_GPU::choose_tokens(device_.stream(), args.q.dtype, arguments);
}

}  // namespace fp8kv::FP8KV_GPU
