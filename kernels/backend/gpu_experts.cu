// The backend's ops for routers and experts.
#include "kernels/backend/gpu_ops.h"

namespace fp8kv::FP8KV_GPU {

size_t place_expert_scratch(ExpertArguments& args, size_t element_bytes, std::byte* memory) {
  args.tiles = expert_tiles(args.sent, args.experts);
  size_t bytes = 0;
  const auto take = [&](int64_t count, size_t size) {
    std::byte* at = memory == nullptr ? nullptr : memory + bytes;
    bytes += (static_cast<size_t>(count) * size + 255) / 256 * 256;
    return at;
  };
  ExpertScratch& scratch = args.scratch;
  scratch.counts = reinterpret_cast<int32_t*>(take(args.experts, sizeof(int32_t)));
  scratch.places = reinterpret_cast<int32_t*>(take(args.sent, sizeof(int32_t)));
  scratch.rows = reinterpret_cast<int32_t*>(take(args.sent, sizeof(int32_t)));
  scratch.weights = reinterpret_cast<float*>(take(args.sent, sizeof(float)));
  scratch.tiles = reinterpret_cast<ExpertTile*>(take(args.tiles, sizeof(ExpertTile)));
  scratch.hidden = take(args.sent * args.hidden_dim, element_bytes);
  scratch.made = reinterpret_cast<float*>(take(args.sent * args.dim, sizeof(float)));
  return bytes;
}

void GpuBackend::route(const ConstTensorView& logits, const Routing& routing,
                       const RouterTerms& terms, const Routed& out) {
  const int64_t n = logits.shape[0], count = logits.shape[1];
  if (n == 0) return;
  const Shape chosen{n, routing.per_token};
  require(logits.dtype == DType::f32, "route", "needs f32");
  require(out.ids.shape == chosen && out.weights.shape == chosen && routing.per_token <= count &&
              count % routing.groups == 0,
          "route", "shapes do not fit");
  require_grid(n, "route");
  RouteArguments arguments;
  arguments.logits = logits.as<const float>();
  const auto data_of = [&](const std::optional<ConstTensorView>& term) -> const void* {
    if (!term) return nullptr;
    const bool first = arguments.choice_bias == nullptr;
    require(is_compute_dtype(term->dtype) && (first || term->dtype == arguments.terms_dtype),
            "route", "needs terms of one type, f32, f16 or bf16");
    require(term->shape.elements() == count, "route", "shapes do not fit");
    arguments.terms_dtype = term->dtype;
    return term->data;
  };
  arguments.choice_bias = data_of(terms.choice_bias);
  arguments.factors = data_of(terms.factors);
  if (terms.given) {
    require(terms.given->dtype == DType::i32 && terms.given->shape == chosen, "route",
            "needs given experts in i32, as many as are taken");
    arguments.given = terms.given->as<const int32_t>();
  }
  arguments.ids = out.ids.as<int32_t>();
  arguments.weights = out.weights.as<float>();
  if (out.counts) arguments.counts = out.counts->as<uint64_t>();
  arguments.count = static_cast<int32_t>(count);
  arguments.per_token = static_cast<int32_t>(routing.per_token);
  arguments.score = routing.score;
  arguments.near = static_cast<float>(routing.near);
  arguments.normalise = routing.normalise;
  arguments.epsilon = static_cast<float>(routing.epsilon);
  arguments.scale = static_cast<float>(routing.scale);
  arguments.groups = static_cast<int32_t>(routing.groups);
  arguments.groups_kept = static_cast<int32_t>(routing.groups_kept);
  arguments.group_worth = routing.group_worth;
  FP8KV_GPU::route(device_.stream(), n, arguments);
}

void GpuBackend::experts(const ConstTensorView& x, const Routed& routed,
                         const ExpertMatrices& matrices, const TensorView& out) {
  if (x.shape[0] == 0) return;
  require(is_compute_dtype(x.dtype) && x.dtype == matrices.dtype && x.dtype == out.dtype, "experts",
          "needs one type of f32, f16 and bf16");
  require(x.shape == out.shape && routed.ids.shape[0] == x.shape[0] &&
              routed.weights.shape == routed.ids.shape,
          "experts", "shapes do not fit");
  ExpertArguments arguments;
  arguments.x = x.data;
  arguments.out = out.data;
  arguments.ids = routed.ids.as<const int32_t>();
  arguments.weights = routed.weights.as<const float>();
  arguments.addresses = matrices.addresses.as<const uint64_t>();
  arguments.n = x.shape[0];
  arguments.dim = x.shape[1];
  arguments.hidden_dim = matrices.hidden_dim;
  arguments.experts = static_cast<int32_t>(matrices.addresses.shape[1]);
  arguments.per_token = static_cast<int32_t>(routed.ids.shape[1]);
  arguments.weigh_input = matrices.weigh_input;
  arguments.gated = matrices.gated;
  arguments.has_identities = matrices.identities > 0;
  if (matrices.biases) {
    const auto& [gate, up, down] = *matrices.biases;
    require(matrices.swiglu.has_value(), "experts",
            "has biases where gate and up are clamped alone");
    require(gate.dtype == x.dtype && up.dtype == x.dtype && down.dtype == x.dtype, "experts",
            "needs biases in the type of x");
    arguments.biases[0] = gate.data;
    arguments.biases[1] = up.data;
    arguments.biases[2] = down.data;
  }
  require(matrices.gated || !matrices.swiglu, "experts", "has a clamped SwiGLU, but no gates");
  arguments.clamped = matrices.swiglu.has_value();
  if (matrices.swiglu) arguments.swiglu = *matrices.swiglu;
  if (matrices.down_amax) arguments.down_amax = matrices.down_amax->as<uint64_t>();
  arguments.sent = arguments.n * arguments.per_token;
  require_grid(arguments.n * arguments.dim, "experts");
  const size_t bytes = place_expert_scratch(arguments, dtype_bytes(x.dtype), nullptr);
  if (bytes > expert_scratch_bytes_) {
    if (expert_scratch_) outgrown_.push_back(expert_scratch_);
    expert_scratch_ = device_.allocate(bytes);
    expert_scratch_bytes_ = bytes;
  }
  place_expert_scratch(arguments, dtype_bytes(x.dtype), expert_scratch_.get());
  FP8KV_GPU::experts(device_.stream(), x.dtype, matrices.activation, arguments);
}

}  // namespace fp8kv::FP8KV_GPU
