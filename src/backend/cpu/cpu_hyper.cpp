#include "backend/cpu/cpu_hyper.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "backend/cpu/memory/cpu_numbers.h"
#include "base/error.h"

namespace fp8kv {
namespace {

float sigmoid(float x) {
  return 1.0f / (1.0f + std::exp(-x));
}

// Sums in double, so that the order of the sum does not show.
float inverse_rms(const float* row, int64_t dim, float eps) {
  double sum = 0;
  for (int64_t i = 0; i < dim; ++i) sum += double{row[i]} * double{row[i]};
  return static_cast<float>(1 / std::sqrt(sum / static_cast<double>(dim) + double{eps}));
}

// A square matrix of shares, in memory that it keeps.
class MixingMatrix {
 public:
  explicit MixingMatrix(size_t count) : count_(count), numbers_(count * count) {}

  float& at(size_t row, size_t column) { return numbers_[row * count_ + column]; }

  // Turns each row into its softmax, with eps added to every number.
  void soften(float eps) {
    for (size_t row = 0; row < count_; ++row) {
      float* const of_row = &at(row, 0);
      const float most = *std::max_element(of_row, of_row + count_);
      float sum = 0;
      for (size_t i = 0; i < count_; ++i) sum += of_row[i] = std::exp(of_row[i] - most);
      for (size_t i = 0; i < count_; ++i) of_row[i] = of_row[i] / sum + eps;
    }
  }

  // Divides each number by the sum of its row or of its column, plus eps.
  void divide(bool by_rows, float eps) {
    for (size_t i = 0; i < count_; ++i) {
      float sum = eps;
      for (size_t j = 0; j < count_; ++j) sum += by_rows ? at(i, j) : at(j, i);
      for (size_t j = 0; j < count_; ++j) (by_rows ? at(i, j) : at(j, i)) /= sum;
    }
  }

 private:
  const size_t count_;
  std::vector<float> numbers_;
};

}  // namespace

void cpu_hyper_shares(ThreadPool& pool, const HyperRows& rows, const HyperConfig& config,
                      const HyperShares& out) {
  const auto count = static_cast<size_t>(config.count);
  const auto width = static_cast<size_t>(rows.products.shape[1]);
  const int64_t n = rows.x.shape[0], dim = rows.x.shape[1];
  FP8KV_ASSERT(rows.x.dtype == DType::f32 && rows.products.dtype == DType::f32);
  FP8KV_ASSERT(config.count <= kMostStreams &&
               out.mix.has_value() == (out.write && config.rounds > 0));
  FP8KV_ASSERT(width == (out.write ? static_cast<size_t>(config.width()) : count));
  const std::vector<float> base = numbers_of(rows.base), scale = numbers_of(rows.scale);
  const auto eps = static_cast<float>(config.eps);
  const auto most = static_cast<float>(config.most_written);
  const float eps_written = config.eps_written ? eps : 0.0f;
  constexpr int64_t kJobRows = 16;
  pool.run((n + kJobRows - 1) / kJobRows, [&](int64_t job, int /*thread*/) {
    MixingMatrix mixing(count);
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
      for (size_t s = 0; s < count; ++s)
        write[s] = most * sigmoid(term(count + s, 1)) + eps_written;
      if (!out.mix) continue;
      const auto each = [&](auto visit) {
        for (size_t from = 0; from < count; ++from) {
          for (size_t to = 0; to < count; ++to) visit(from, to);
        }
      };
      each([&](size_t from, size_t to) { mixing.at(from, to) = term((2 + from) * count + to, 2); });
      mixing.soften(eps);
      mixing.divide(false, eps);
      for (int64_t round = 1; round < config.rounds; ++round) {
        mixing.divide(true, eps);
        mixing.divide(false, eps);
      }
      float* const mix = out.mix->as<float>() + at * count * count;
      each([&](size_t from, size_t to) { mix[to * count + from] = mixing.at(from, to); });
    }
  });
}

}  // namespace fp8kv
