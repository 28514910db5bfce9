#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "base/error.h"
#include "core/sampling.h"
#include "kernels/backend/gpu_backend.h"
#include "kernels/device/device.h"
#include "kernels/launch.h"
#include "kernels/ops/gemm_library.h"

namespace fp8kv::FP8KV_GPU {
namespace {

// What the model promises; a broken promise is a mistake of the program.
void require(bool condition, const char* op, const char* what) {
  if (!condition) throw Error(cat(op, ": ", what), "", ErrorKind::device);
}

void require_grid(int64_t blocks, const char* op) {
  require(blocks <= std::numeric_limits<int32_t>::max(), op, "too many rows for one step");
}

Rows rows_of(const Batch& batch, int64_t n, const char* op) {
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
  void norm(const ConstTensorView& x, const Norm& norm, const TensorView& out) override;
  void linear(const ConstTensorView& x, std::span<const Projection> projections) override;
  void rope_append(const RopeAppend& args) override;
  void project_append(const ConstTensorView& x, const Entry& entry, const AttentionWeights& weights,
                      const RopeAppend& args) override;
  void attention(const ConstTensorView& q, const PagedKv& kv, const Batch& batch,
                 const AttentionOptions& options, const TensorView& out) override;
  void activate(Activation activation, const TensorView& x,
                const std::optional<ConstTensorView>& up) override;
  void hidden(const ConstTensorView& x, const Entry& entry,
              const HiddenProducts& products) override;
  void route(const ConstTensorView& logits, const Routing& routing,
             const std::optional<ConstTensorView>& choice_bias, const Routed& out) override;
  void experts(const ConstTensorView& x, const Routed& routed, const ExpertMatrices& matrices,
               const TensorView& out) override;
  void gate_rows(const TensorView& x, const ConstTensorView& gates) override;
  void add(const TensorView& x, const ConstTensorView& y, float multiplier) override;
  void scale(const TensorView& x, float multiplier, float cap) override;
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
  // Grows to what any step needs: counters, then partial results. Smaller ones stay, since recorded
  // steps point into them.
  std::shared_ptr<std::byte> scratch_;
  std::vector<std::shared_ptr<std::byte>> outgrown_;
  size_t scratch_counter_bytes_ = 0;
  size_t scratch_float_bytes_ = 0;
  std::shared_ptr<std::byte> expert_scratch_;
  size_t expert_scratch_bytes_ = 0;
};

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

// The weights of a norm that x can go through, into `out`.
NormWeights norm_weights(const ConstTensorView& x, const Norm& norm, const TensorView& out) {
  require(x.dtype == norm.weight.dtype && x.dtype == out.dtype && is_compute_dtype(x.dtype) &&
              (!norm.bias || norm.bias->dtype == x.dtype),
          "norm", "needs one type of f32, f16 and bf16");
  const int64_t kinds = norm.weight.shape.elements() / x.shape[1];
  require(x.shape == out.shape && norm.weight.shape.elements() == kinds * x.shape[1] &&
              (kinds == 1 || norm.kind == NormKind::layer) &&
              (!norm.bias || norm.bias->shape.elements() == x.shape[1]),
          "norm", "shapes do not fit");
  require(!norm.bias || norm.kind == NormKind::layer, "norm", "has a bias that its kind has not");
  require_grid(x.shape[0], "norm");
  return {.weight = norm.weight.data,
          .bias = norm.bias ? norm.bias->data : nullptr,
          .weight_offset = norm.weight_offset,
          .eps = norm.eps};
}

void GpuBackend::norm(const ConstTensorView& x, const Norm& norm, const TensorView& out) {
  if (x.shape[0] == 0) return;
  const NormWeights weights = norm_weights(x, norm, out);
  const ConstMatrix rows{x.data, x.dtype, x.shape[0], x.shape[1]};
  if (norm.kind == NormKind::rms) {
    FP8KV_GPU::rmsnorm(device_.stream(), rows, weights, out.data);
  } else {
    const int64_t kinds = norm.weight.shape.elements() / x.shape[1];
    FP8KV_GPU::layernorm(device_.stream(), rows, weights, kinds, out.data);
  }
}

Product product_of(const ConstTensorView& x, const Projection& projection) {
  const int64_t out_dim = projection.weight.shape[0];
  require(projection.weight.dtype == x.dtype &&
              (projection.out.dtype == x.dtype || projection.out.dtype == DType::f32) &&
              (!projection.bias || projection.bias->dtype == x.dtype),
          "linear", "needs the weights' type for x and bias, and that or f32 for the result");
  require(projection.weight.shape[1] == x.shape[1] && projection.out.shape[0] == x.shape[0] &&
              projection.out.shape[1] == out_dim &&
              (!projection.bias || projection.bias->shape.elements() == out_dim),
          "linear", "shapes do not fit");
  return {.weight = projection.weight.data,
          .bias = projection.bias ? projection.bias->data : nullptr,
          .out = projection.out.data,
          .out_dim = out_dim,
          .accumulate = projection.accumulate,
          .out_f32 = projection.out.dtype == DType::f32};
}

void GpuBackend::linear(const ConstTensorView& x, std::span<const Projection> projections) {
  if (x.shape[0] == 0) return;
  require(is_compute_dtype(x.dtype), "linear", "needs f32, f16 or bf16");
  Products products;
  products.x = x.data;
  products.n = x.shape[0];
  products.in_dim = x.shape[1];
  for (const Projection& projection : projections) {
    if (products.count == kMaxProducts) {
      FP8KV_GPU::linear(device_.stream(), gemm_, x.dtype, products, step_size().rows);
      products.count = 0;
    }
    products.each[products.count++] = product_of(x, projection);
  }
  if (products.count > 0) {
    FP8KV_GPU::linear(device_.stream(), gemm_, x.dtype, products, step_size().rows);
  }
}

// The products for a kernel that has rmsnorm and them in one; nullopt where they are not for one.
std::optional<NormedProducts> normed_products(const ConstTensorView& x, const Entry& entry,
                                              std::span<const Projection> projections,
                                              StepSize size) {
  if (!entry.norm || entry.norm->kind != NormKind::rms) return std::nullopt;
  NormedProducts normed;
  normed.x = x.data;
  normed.norm = norm_weights(x, *entry.norm, entry.scratch);
  normed.products.x = entry.scratch.data;
  normed.products.n = x.shape[0];
  normed.products.in_dim = x.shape[1];
  for (const Projection& projection : projections) {
    normed.products.each[normed.products.count++] = product_of(entry.scratch, projection);
  }
  if (!takes_fused(x.dtype, normed, size.rows)) return std::nullopt;
  return normed;
}

RopeArguments rope_arguments(const RopeAppend& args) {
  const int64_t n = args.q.shape[0];
  require(args.q.dtype == args.k.dtype && args.q.dtype == args.v.dtype &&
              is_compute_dtype(args.q.dtype) && is_compute_dtype(args.round_to),
          "rope_append", "needs one type of f32, f16 and bf16");
  const Shape kv_shape{n, args.kv.n_kv_heads, args.kv.head_dim};
  require(args.k.shape == kv_shape && args.v.shape == kv_shape &&
              args.q.shape[1] % args.kv.n_kv_heads == 0 && args.q.shape[2] == args.kv.head_dim &&
              args.kv.head_dim % 2 == 0 && args.rope.shape[1] % 2 == 0 &&
              args.rope.shape[1] <= args.kv.head_dim &&
              (!args.q_rope || args.q_rope->shape == args.rope.shape),
          "rope_append", "shapes do not fit");
  RopeArguments arguments;
  arguments.q = args.q.data;
  arguments.k = args.k.data;
  arguments.v = args.v.data;
  arguments.rope = args.rope.as<const float>();
  arguments.q_rope = args.q_rope ? args.q_rope->as<const float>() : arguments.rope;
  if (args.magnitudes) arguments.magnitudes = args.magnitudes->as<uint64_t>();
  arguments.rows = rows_of(args.batch, n, "rope_append");
  arguments.kv = args.kv;
  arguments.n_heads = static_cast<int32_t>(args.q.shape[1]);
  arguments.rotary_dim = static_cast<int32_t>(args.rope.shape[1]);
  arguments.pairs = args.pairs;
  arguments.round_to = args.round_to;
  return arguments;
}

void GpuBackend::rope_append(const RopeAppend& args) {
  if (args.q.shape[0] == 0) return;
  FP8KV_GPU::rope_append(device_.stream(), args.q.dtype, rope_arguments(args));
}

void GpuBackend::project_append(const ConstTensorView& x, const Entry& entry,
                                const AttentionWeights& weights, const RopeAppend& args) {
  if (x.shape[0] == 0) return;
  const auto normed = normed_products(x, entry, projections_of(weights, args), step_size());
  if (!normed || args.magnitudes || weights.norms) {
    return Backend::project_append(x, entry, weights, args);
  }
  FP8KV_GPU::project_append(device_.stream(), x.dtype, *normed, rope_arguments(args),
                            device_.multiprocessors());
}

void GpuBackend::attention(const ConstTensorView& q, const PagedKv& kv, const Batch& batch,
                           const AttentionOptions& options, const TensorView& out) {
  if (q.shape[0] == 0) return;
  require(q.dtype == out.dtype && is_compute_dtype(q.dtype), "attention",
          "needs one type of f32, f16 and bf16");
  require(q.shape == out.shape && q.shape[1] % kv.n_kv_heads == 0 && q.shape[2] == kv.head_dim,
          "attention", "shapes do not fit");
  require(kv.head_dim <= 256, "attention", "a head has more than 256 elements");
  AttentionArguments arguments;
  arguments.q = q.data;
  arguments.out = out.data;
  arguments.rows = rows_of(batch, q.shape[0], "attention");
  arguments.kv = kv;
  arguments.n_heads = static_cast<int32_t>(q.shape[1]);
  arguments.scale = options.scale;
  arguments.window = options.window;
  ScoreOptions scores{.chunk = options.chunk, .cap = options.cap};
  if (options.bias) {
    require(options.bias->dtype == DType::f32 && options.bias->shape[0] == q.shape[1], "attention",
            "needs a bias in f32 for every head");
    scores.bias = options.bias->as<float>();
    scores.positions = options.bias->shape[1];
  }
  const bool plain = options.chunk == 0 && options.cap == 0.0f && !options.bias;
  if (!plain || !takes_fast_attention(q.dtype, arguments)) {
    attention_any(device_.stream(), q.dtype, arguments, scores);
  } else if (takes_decode(arguments, step_size().rows_per_sequence)) {
    attention_decode(device_.stream(), q.dtype, arguments, decode_scratch(decode_sizes(arguments)),
                     device_.multiprocessors());
  } else {
    attention_prefill(device_.stream(), q.dtype, arguments);
  }
}

size_t counter_bytes(const DecodeSizes& sizes) {
  return (sizes.counters * sizeof(uint32_t) + 255) / 256 * 256;
}

size_t float_bytes(const DecodeSizes& sizes) {
  return (sizes.partials + sizes.states) * sizeof(float);
}

// Puts the working memory of experts() from `memory` on, and gives its size.
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

uint64_t GpuBackend::op_memory(const StepShape& shape) const {
  AttentionArguments arguments;
  arguments.rows.n = static_cast<int32_t>(shape.rows);
  arguments.rows.n_seqs = static_cast<int32_t>(shape.sequences);
  arguments.rows.max_pages = static_cast<int32_t>(shape.max_pages);
  arguments.kv.page_size = shape.page_size;
  arguments.kv.n_kv_heads = shape.n_kv_heads;
  arguments.kv.head_dim = shape.head_dim;
  arguments.n_heads = shape.n_heads;
  uint64_t bytes = 0;
  if (takes_decode(arguments, shape.computed_as.rows_per_sequence)) {
    const DecodeSizes sizes = decode_sizes(arguments);
    bytes += counter_bytes(sizes) + float_bytes(sizes);
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
  const size_t counters = std::max(counter_bytes(sizes), scratch_counter_bytes_);
  const size_t floats = std::max(float_bytes(sizes), scratch_float_bytes_);
  if (counters > scratch_counter_bytes_ || floats > scratch_float_bytes_) {
    if (scratch_) outgrown_.push_back(scratch_);
    scratch_ = device_.allocate(counters + floats);
    scratch_counter_bytes_ = counters;
    scratch_float_bytes_ = floats;
  }
  // The counters come first, and never overlap what an earlier call used for something else.
  auto* partials = reinterpret_cast<float*>(scratch_.get() + scratch_counter_bytes_);
  return {partials, partials + sizes.partials, reinterpret_cast<uint32_t*>(scratch_.get())};
}

// Two of one shape and type.
void require_alike(const TensorView& x, const ConstTensorView& y, const char* op) {
  require(x.dtype == y.dtype && is_compute_dtype(x.dtype) && x.shape == y.shape, op,
          "needs two of one shape and type, f32, f16 or bf16");
}

void GpuBackend::activate(Activation activation, const TensorView& x,
                          const std::optional<ConstTensorView>& up) {
  if (x.shape.elements() == 0) return;
  require_alike(x, up ? *up : ConstTensorView(x), "activate");
  FP8KV_GPU::activate(device_.stream(), x.dtype, activation, x.shape.elements(), x.data,
                      up ? up->data : nullptr);
}

void GpuBackend::hidden(const ConstTensorView& x, const Entry& entry,
                        const HiddenProducts& products) {
  if (x.shape[0] == 0) return;
  const auto& [gate, up, activation] = products;
  require(!up.accumulate && (!gate || (!gate->accumulate && gate->out.shape == up.out.shape)),
          "hidden", "needs new results of one shape");
  if (gate && takes_hidden(activation)) {
    if (const auto normed = normed_products(x, entry, std::array{*gate, up}, step_size())) {
      return FP8KV_GPU::hidden(device_.stream(), x.dtype, activation, *normed,
                               device_.multiprocessors());
    }
  }
  Backend::hidden(x, entry, products);
}

void GpuBackend::route(const ConstTensorView& logits, const Routing& routing,
                       const std::optional<ConstTensorView>& choice_bias, const Routed& out) {
  const int64_t n = logits.shape[0], count = logits.shape[1];
  if (n == 0) return;
  const Shape chosen{n, routing.per_token};
  require(logits.dtype == DType::f32 && (!choice_bias || is_compute_dtype(choice_bias->dtype)),
          "route", "needs f32, and f32, f16 or bf16 for the bias");
  require(out.ids.shape == chosen && out.weights.shape == chosen && routing.per_token <= count &&
              count % routing.groups == 0 &&
              (!choice_bias || choice_bias->shape.elements() == count),
          "route", "shapes do not fit");
  require_grid(n, "route");
  RouteArguments arguments;
  arguments.logits = logits.as<const float>();
  if (choice_bias) {
    arguments.choice_bias = choice_bias->data;
    arguments.bias_dtype = choice_bias->dtype;
  }
  arguments.ids = out.ids.as<int32_t>();
  arguments.weights = out.weights.as<float>();
  if (out.counts) arguments.counts = out.counts->as<uint64_t>();
  arguments.count = static_cast<int32_t>(count);
  arguments.per_token = static_cast<int32_t>(routing.per_token);
  arguments.score = routing.score;
  arguments.normalise = routing.normalise;
  arguments.epsilon = static_cast<float>(routing.epsilon);
  arguments.scale = static_cast<float>(routing.scale);
  arguments.groups = static_cast<int32_t>(routing.groups);
  arguments.groups_kept = static_cast<int32_t>(routing.groups_kept);
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
  FP8KV_GPU::add(device_.stream(), x.dtype, x.shape.elements(), x.data, y.data, multiplier);
}

void GpuBackend::scale(const TensorView& x, float multiplier, float cap) {
  if (x.shape.elements() == 0) return;
  require(is_compute_dtype(x.dtype), "scale", "needs f32, f16 or bf16");
  FP8KV_GPU::scale(device_.stream(), x.dtype, x.shape.elements(), x.data, multiplier, cap);
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

}  // namespace

std::unique_ptr<Backend> make_gpu_backend() {
  return std::make_unique<GpuBackend>();
}

}  // namespace fp8kv::FP8KV_GPU
