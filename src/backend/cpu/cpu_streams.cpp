#include "backend/cpu/cpu_streams.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "backend/cpu/memory/cpu_numbers.h"
#include "base/error.h"

namespace fp8kv {
namespace {

// Rows of one job: some microseconds of work.
constexpr int64_t kJobRows = 4;

template <typename Work>
void for_rows(ThreadPool& pool, int64_t n, const Work& work) {
  pool.run((n + kJobRows - 1) / kJobRows, [&](int64_t job, int /*thread*/) {
    for (int64_t row = job * kJobRows; row < std::min(n, (job + 1) * kJobRows); ++row) work(row);
  });
}

std::span<float> row_of(const TensorView& x, int64_t row) {
  const auto dim = static_cast<size_t>(x.shape[1]);
  return {x.as<float>() + static_cast<size_t>(row) * dim, dim};
}

// Sums in double, so that the order of the sum does not show.
double mean_square(const float* row, int64_t dim) {
  double sum = 0;
  for (int64_t i = 0; i < dim; ++i) sum += double{row[i]} * double{row[i]};
  return sum / static_cast<double>(dim);
}

}  // namespace

void cpu_scale_columns(ThreadPool& pool, const TensorView& x, const ColumnFactors& by) {
  FP8KV_ASSERT(x.dtype == DType::f32 && by.weight.shape.elements() == x.shape[1]);
  std::vector<float> factors(static_cast<size_t>(x.shape[1]));
  for (size_t i = 0; i < factors.size(); ++i) {
    factors[i] = number_at(by.weight, static_cast<int64_t>(i)) + by.offset;
  }
  for_rows(pool, x.shape[0], [&](int64_t row) {
    const std::span<float> values = row_of(x, row);
    for (size_t i = 0; i < values.size(); ++i) values[i] *= factors[i];
  });
}

void cpu_mix_streams(ThreadPool& pool, const ConstTensorView& x, const ConstTensorView& shares,
                     const StreamSum& how, const TensorView& y) {
  const int64_t from = x.shape[1], to = y.shape[1], dim = x.shape[2];
  FP8KV_ASSERT(x.dtype == DType::f32 && y.dtype == DType::f32 && shares.dtype == DType::f32);
  FP8KV_ASSERT(from <= kMostMixed && to <= kMostMixed && y.shape[2] == dim);
  for_rows(pool, x.shape[0], [&](int64_t row) {
    const float* in = x.as<const float>() + row * from * dim;
    const float* of_row = shares.as<const float>() + row * to * from;
    float* out = y.as<float>() + row * to * dim;
    for (int64_t i = 0; i < dim; ++i) {
      std::array<float, kMostMixed> read{};  // y may be x
      for (int64_t k = 0; k < from; ++k) read[static_cast<size_t>(k)] = in[k * dim + i];
      for (int64_t s = 0; s < to; ++s) {
        float sum = 0;
        for (int64_t k = 0; k < from; ++k) {
          sum += (of_row[s * from + k] + how.more) * read[static_cast<size_t>(k)];
        }
        out[s * dim + i] = how.onto ? out[s * dim + i] + sum : sum;
      }
    }
  });
}

void cpu_stream_gates(ThreadPool& pool, const ConstTensorView& keys, const ConstTensorView& queries,
                      const TensorView& gates) {
  const int64_t n = keys.shape[0], count = keys.shape[1], dim = keys.shape[2];
  FP8KV_ASSERT(keys.dtype == DType::f32 && queries.dtype == DType::f32);
  FP8KV_ASSERT(keys.shape == queries.shape && gates.dtype == DType::f32);
  FP8KV_ASSERT((gates.shape == Shape{n, count}));
  for_rows(pool, n * count, [&](int64_t row) {
    const float* const key = keys.as<const float>() + row * dim;
    const float* const query = queries.as<const float>() + row * dim;
    double sum = 0;
    for (int64_t i = 0; i < dim; ++i) sum += double{key[i]} * double{query[i]};
    const auto product = static_cast<float>(sum / std::sqrt(static_cast<double>(dim)));
    const float size = std::abs(product) < kLeastProduct ? kLeastProduct : std::abs(product);
    const float root = product == 0.0f ? 0.0f : std::copysign(std::sqrt(size), product);
    gates.as<float>()[row] = 1.0f / (1.0f + std::exp(-root));
  });
}

void cpu_match_rms(ThreadPool& pool, const TensorView& x, const ConstTensorView& like) {
  FP8KV_ASSERT(x.dtype == DType::f32 && like.dtype == DType::f32 && x.shape == like.shape);
  const int64_t dim = x.shape[1];
  for_rows(pool, x.shape[0], [&](int64_t row) {
    const std::span<float> values = row_of(x, row);
    const double wanted = mean_square(like.as<const float>() + row * dim, dim);
    const double found = std::max(mean_square(values.data(), dim), double{kLeastMeanSquare});
    const auto factor = static_cast<float>(std::sqrt(wanted / found));
    for (float& value : values) value *= factor;
  });
}

void cpu_cut_below(ThreadPool& pool, const TensorView& x, float deviations) {
  FP8KV_ASSERT(x.dtype == DType::f32);
  for_rows(pool, x.shape[0], [&](int64_t row) {
    const std::span<float> values = row_of(x, row);
    const auto count = static_cast<double>(values.size());
    double sum = 0, squares = 0;
    for (const float value : values) sum += double{value};
    const double mean = sum / count;
    for (const float value : values) squares += (double{value} - mean) * (double{value} - mean);
    const auto cut = static_cast<float>(mean + double{deviations} * std::sqrt(squares / count));
    // NaN stays NaN.
    for (float& value : values) value = value < cut ? 0.0f : value - cut;
  });
}

}  // namespace fp8kv
