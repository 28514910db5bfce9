#include "backend/cpu/cpu_hyper.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "core/numbers/half.h"

namespace fp8kv {
namespace {

std::vector<float> floats(const ConstTensorView& view) {
  std::vector<float> all(static_cast<size_t>(view.shape.elements()));
  for (size_t i = 0; i < all.size(); ++i) {
    all[i] = view.dtype == DType::f16    ? f16_to_float(view.as<uint16_t>()[i])
             : view.dtype == DType::bf16 ? bf16_to_float(view.as<uint16_t>()[i])
                                         : view.as<float>()[i];
  }
  return all;
}

float sigmoid(float x) {
  return 1.0f / (1.0f + std::exp(-x));
}

// Sums in double, so that the order of the sum does not show.
float inverse_rms(const float* row, int64_t dim, float eps) {
  double sum = 0;
  for (int64_t i = 0; i < dim; ++i) sum += double{row[i]} * double{row[i]};
  return static_cast<float>(1 / std::sqrt(sum / static_cast<double>(dim) + double{eps}));
}

}  // namespace

void cpu_hyper_shares(ThreadPool& pool, const HyperRows& rows, const HyperConfig& config,
                      const HyperShares& out) {
  const auto count = static_cast<size_t>(config.count);
  const auto width = static_cast<size_t>(rows.products.shape[1]);
  const int64_t n = rows.x.shape[0], dim = rows.x.shape[1];
  FP8KV_ASSERT(rows.x.dtype == DType::f32 && rows.products.dtype == DType::f32);
  FP8KV_ASSERT(config.count <= kMostStreams && width == (out.write ? 2 * count : count));
  const std::vector<float> base = floats(rows.base), scale = floats(rows.scale);
  const auto eps = static_cast<float>(config.eps);
  const auto most = static_cast<float>(config.most_written);
  constexpr int64_t kJobRows = 16;
  pool.run((n + kJobRows - 1) / kJobRows, [&](int64_t job, int /*thread*/) {
    for (int64_t row = job * kJobRows; row < std::min(n, (job + 1) * kJobRows); ++row) {
      const auto at = static_cast<size_t>(row);
      const float* const products = rows.products.as<const float>() + at * width;
      const float factor = inverse_rms(rows.x.as<const float>() + row * dim, dim, rows.norm_eps);
      const auto term = [&](size_t i, size_t kind) {
        return products[i] * factor * scale[kind] + base[i];
      };
      float* const read = out.read.as<float>() + at * count;
      for (size_t s = 0; s < count; ++s) read[s] = sigmoid(term(s, 0)) + eps;
      if (!out.write) continue;
      float* const write = out.write->as<float>() + at * count;
      for (size_t s = 0; s < count; ++s) write[s] = most * sigmoid(term(count + s, 1)) + eps;
    }
  });
}

}  // namespace fp8kv
