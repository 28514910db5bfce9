// The backend's products: one launch for products that share x, fused with the ops before and after
// them if a kernel can.
#include <algorithm>
#include <array>
#include <span>

#include "kernels/backend/gpu_ops.h"

namespace fp8kv::FP8KV_GPU {
namespace {

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
  return {.weight = projection.codes ? projection.codes->codes : projection.weight.data,
          .bias = projection.bias ? projection.bias->data : nullptr,
          .out = projection.out.data,
          .out_dim = out_dim,
          .accumulate = projection.accumulate,
          .out_f32 = projection.out.dtype == DType::f32};
}

CodeScales code_scales(const QuantisedMatrix& matrix) {
  return {static_cast<const float*>(matrix.scales), static_cast<int32_t>(matrix.block_rows),
          static_cast<int32_t>(matrix.block_columns), static_cast<int32_t>(matrix.n_groups)};
}

// Whether two products fit one launch: both have numbers, or both have codes of one format.
bool go_together(const Projection& a, const Projection& b) {
  if (!a.codes || !b.codes) return !a.codes && !b.codes;
  return a.codes->codes_as == b.codes->codes_as;
}

// Products for a kernel that fuses rmsnorm with them; nullopt if no such kernel takes them.
std::optional<NormedProducts> normed_products(const ConstTensorView& x, const InputNorm& entry,
                                              std::span<const Projection> projections,
                                              StepSize size) {
  if (!entry.norm || entry.norm->kind != NormKind::rms) return std::nullopt;
  if (entry.norm->weight.dtype != x.dtype) return std::nullopt;
  for (const Projection& projection : projections) {
    if (projection.codes) return std::nullopt;
  }
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

}  // namespace

// Keeps FP8 codes in place, and decodes their scales to f32.
std::optional<QuantisedMatrix> GpuBackend::in_place(const QuantisedMatrix& matrix, DType compute,
                                                    WeightUse use, std::vector<Tensor>& storage) {
  if (use != WeightUse::linear || !takes_codes(matrix, compute)) return std::nullopt;
  QuantisedMatrix read = matrix;
  read.scale_dtype = DType::f32;
  read.overall = nullptr;
  read.row_step = matrix.n_groups;
  read.group_step = 1;
  const int64_t blocks = (matrix.rows + matrix.block_rows - 1) / matrix.block_rows;
  storage.push_back(allocate(DType::f32, Shape{blocks, matrix.n_groups}));
  const TensorView scales = storage.back().view();
  decode_scales(device_.stream(), matrix, scales.as<float>());
  read.scales = scales.data;
  return read;
}

void GpuBackend::linear(const ConstTensorView& x, std::span<const Projection> projections) {
  if (x.shape[0] == 0) return;
  require(is_compute_dtype(x.dtype), "linear", "needs f32, f16 or bf16");
  for (size_t at = 0; at < projections.size();) {
    const Projection& first = projections[at];
    CodedProducts coded;
    Products& products = coded.products;
    products.x = x.data;
    products.n = x.shape[0];
    products.in_dim = x.shape[1];
    for (; at < projections.size() && products.count < kMaxProducts; ++at) {
      const Projection& projection = projections[at];
      if (!go_together(first, projection)) break;
      if (projection.codes) coded.scales[products.count] = code_scales(*projection.codes);
      products.each[products.count++] = product_of(x, projection);
    }
    if (first.codes) {
      const bool e5m2 = first.codes->codes_as == WeightCodes::e5m2;
      coded.format = e5m2 ? Fp8Format::e5m2 : Fp8Format::e4m3fn;
      linear_codes(device_.stream(), x.dtype, coded, step_size().rows);
    } else {
      FP8KV_GPU::linear(device_.stream(), gemm_, x.dtype, products, step_size().rows);
    }
  }
}

void GpuBackend::project_append(const ConstTensorView& x, const InputNorm& entry,
                                const AttentionWeights& weights, const RopeAppend& args) {
  if (x.shape[0] == 0) return;
  const auto normed = normed_products(x, entry, projections_of(weights, args), step_size());
  if (!normed || args.magnitudes || weights.norms || args.k.shape[1] == 0 ||
      !args.kv.in_elements() || args.kv.v_dim() != args.kv.head_dim) {
    return Backend::project_append(x, entry, weights, args);
  }
  FP8KV_GPU::project_append(device_.stream(), x.dtype, *normed, rope_arguments(args),
                            device_.multiprocessors());
}

void GpuBackend::hidden(const ConstTensorView& x, const InputNorm& entry,
                        const HiddenProducts& products) {
  if (x.shape[0] == 0) return;
  const auto& [gate, up, activation] = products;
  require(!up.accumulate && (!gate || (!gate->accumulate && gate->out.shape == up.out.shape)),
          "hidden", "needs new results of one shape");
  if (gate && takes_hidden(activation, gate->out.shape[1], device_.multiprocessors())) {
    if (const auto normed = normed_products(x, entry, std::array{*gate, up}, step_size())) {
      return FP8KV_GPU::hidden(device_.stream(), x.dtype, activation, *normed,
                               device_.multiprocessors());
    }
  }
  Backend::hidden(x, entry, products);
}

}  // namespace fp8kv::FP8KV_GPU
