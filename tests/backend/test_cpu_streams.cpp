// Ops of models with several residual streams, on the CPU, against plain loops in double precision.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "base/rng.h"
#include "support/backends/compare.h"
#include "support/backends/cpu.h"
#include "support/reference/clamped_swiglu.h"

namespace fp8kv {
namespace {

using test::kUnitF32;

// More rows than a job has.
constexpr int64_t kRows = 9;

std::vector<float> random_floats(uint64_t seed, int64_t count) {
  Rng rng(seed);
  return test::random_floats(rng, count);
}

double mean_square(const float* row, int64_t dim) {
  double sum = 0;
  for (int64_t i = 0; i < dim; ++i) sum += double{row[i]} * double{row[i]};
  return sum / static_cast<double>(dim);
}

}  // namespace

TEST_CASE("scale_columns: every column has a factor of its own, of any type") {
  const auto backend = make_cpu_backend(2);
  const std::vector<float> x = random_floats(1, kRows * 33);
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const test::Elements weight(random_floats(2, 33), dtype, Shape{33});
    const test::Elements wide(random_floats(2, 33), DType::f32, Shape{33});
    const Tensor rows = test::tensor_of(*backend, x, {kRows, 33});
    const float offset = dtype == DType::f16 ? 1.0f : 0.0f;
    backend->scale_columns(rows.view(), {weight.view(), offset});
    std::vector<double> expected, allowed;
    for (size_t i = 0; i < x.size(); ++i) {
      const double factor = double{wide.view().as<const float>()[i % 33]};
      expected.push_back(double{x[i]} * (factor + double{offset}));
      // Errors of weights with 8, 11 or 24 bits, of a sum, and of a product.
      const double bits = dtype == DType::bf16 ? 0x1p-8 : dtype == DType::f16 ? 0x1p-11 : 0;
      allowed.push_back(std::abs(double{x[i]} * factor) * bits * 1.01 +
                        std::abs(expected.back()) * 2 * kUnitF32 + 1e-7 * bits);
    }
    test::expect_close(test::floats_of(*backend, rows.view()), expected, allowed);
  }
}

TEST_CASE("mix_streams: adds to each stream its shares of all, in place too") {
  const auto backend = make_cpu_backend(2);
  constexpr int64_t kDim = 17;
  struct Sizes {
    int64_t from, to;
  };
  for (const auto& [from, to] : {Sizes{4, 4}, {1, 4}, {16, 3}, {2, 2}}) {
    CAPTURE(from);
    CAPTURE(to);
    const std::vector<float> x = random_floats(3, kRows * from * kDim);
    const std::vector<float> y = random_floats(4, kRows * to * kDim);
    const std::vector<float> shares = random_floats(5, kRows * to * from);
    const auto mixed = [&](const std::vector<float>& into, bool in_place) {
      const Tensor in = test::tensor_of(*backend, x, {kRows, from, kDim});
      const Tensor out = test::tensor_of(*backend, into, {kRows, to, kDim});
      const TensorView& to_view = in_place ? in.view() : out.view();
      backend->mix_streams(in.view(), test::tensor_of(*backend, shares, {kRows, to * from}).view(),
                           {.more = 0.5f}, to_view);
      return test::floats_of(*backend, to_view);
    };
    std::vector<double> expected, allowed;
    for (int64_t i = 0; i < kRows * to * kDim; ++i) {
      const int64_t row = i / kDim / to, s = i / kDim % to, column = i % kDim;
      double sum = double{y[static_cast<size_t>(i)]}, size = std::abs(sum);
      for (int64_t k = 0; k < from; ++k) {
        const double share = 0.5 + double{shares[static_cast<size_t>((row * to + s) * from + k)]};
        const double term =
            share * double{x[static_cast<size_t>((row * from + k) * kDim + column)]};
        sum += term;
        size += std::abs(term);
      }
      expected.push_back(sum);
      allowed.push_back(static_cast<double>(from + 3) * kUnitF32 * (size + 1));
    }
    test::expect_close(mixed(y, false), expected, allowed);
    if (from == to) CHECK(mixed(x, true) == mixed(x, false));
  }
}

TEST_CASE("mix_streams: sums take the place of what was there") {
  const auto backend = make_cpu_backend(2);
  const std::vector<float> x = {1, 2, 10, 20}, shares = {0.5f, 0.25f, 2, -1};
  const Tensor streams = test::tensor_of(*backend, x, {1, 2, 2});
  backend->mix_streams(streams.view(), test::tensor_of(*backend, shares, {1, 4}).view(),
                       {.onto = false}, streams.view());
  CHECK(test::floats_of(*backend, streams.view()) == std::vector<float>{3, 6, -8, -16});
}

TEST_CASE("match_rms: rows become as large as others, and rows of nearly nothing stay small") {
  const auto backend = make_cpu_backend(2);
  constexpr int64_t kDim = 21;
  std::vector<float> x = random_floats(6, kRows * kDim);
  const std::vector<float> like = random_floats(7, kRows * kDim);
  for (int64_t i = 0; i < kDim; ++i) x[static_cast<size_t>(2 * kDim + i)] *= 1e-4f;
  for (int64_t i = 0; i < kDim; ++i) x[static_cast<size_t>(5 * kDim + i)] = 0;
  const Tensor rows = test::tensor_of(*backend, x, {kRows, kDim});
  backend->match_rms(rows.view(), test::tensor_of(*backend, like, {kRows, kDim}).view());
  const std::vector<float> out = test::floats_of(*backend, rows.view());
  for (int64_t row = 0; row < kRows; ++row) {
    const double wanted = mean_square(like.data() + row * kDim, kDim);
    const double before = mean_square(x.data() + row * kDim, kDim);
    const double after = mean_square(out.data() + row * kDim, kDim);
    const double expected = row == 2 || row == 5 ? before * wanted / 1e-5 : wanted;
    CHECK(after == doctest::Approx(expected).epsilon(4 * kUnitF32));
  }
}

TEST_CASE("xielu: what double precision gives on both sides of 0") {
  const auto backend = make_cpu_backend(1);
  const Xielu numbers{0.9f, 1.2f, 0.5f, -0.25f};
  const std::vector<float> x = {-7, -0.5f, -0.125f, 0, 0.125f, 3};
  const Tensor rows = test::tensor_of(*backend, x, {2, 3});
  backend->xielu(rows.view(), numbers);
  const std::vector<float> out = test::floats_of(*backend, rows.view());
  for (size_t i = 0; i < x.size(); ++i) {
    const double at = double{x[i]}, least = std::min(at, double{numbers.eps});
    const double curve = at > 0 ? double{numbers.positive} * at * at
                                : double{numbers.negative} * (std::expm1(least) - at);
    CHECK(out[i] == doctest::Approx(curve + double{numbers.beta} * at).epsilon(1e-6));
  }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor bad = test::tensor_of(*backend, std::vector<float>{nan}, {1, 1});
  backend->xielu(bad.view(), numbers);
  CHECK(std::isnan(test::floats_of(*backend, bad.view())[0]));
}

TEST_CASE("clamped_swiglu: every form is what double precision gives") {
  const auto backend = make_cpu_backend(1);
  const std::vector<float> gates = {-7, -0.5f, 0, 0.5f, 3, 90}, ups = {2, -0.25f, 5, -9, 0.5f, 1};
  for (const SwigluForm form :
       {SwigluForm::plus_one, SwigluForm::silu, SwigluForm::after, SwigluForm::situ}) {
    const ClampedSwiglu how{.alpha = 1.3f, .limit = 0.75f, .form = form};
    const Tensor rows = test::tensor_of(*backend, gates, {2, 3});
    backend->clamped_swiglu(how, rows.view(), test::tensor_of(*backend, ups, {2, 3}).view());
    const std::vector<float> out = test::floats_of(*backend, rows.view());
    for (size_t i = 0; i < out.size(); ++i) {
      const double expected = test::exact_clamped_swiglu(how, double{gates[i]}, double{ups[i]});
      CHECK(out[i] == doctest::Approx(expected).epsilon(1e-6));
    }
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const Tensor bad = test::tensor_of(*backend, std::vector<float>{nan, 1}, {1, 2});
    backend->clamped_swiglu(how, bad.view(),
                            test::tensor_of(*backend, std::vector<float>{1, nan}, {1, 2}).view());
    for (const float value : test::floats_of(*backend, bad.view())) CHECK(std::isnan(value));
  }
}

TEST_CASE("cut_below: what is below the cut is 0, the rest how far it is above") {
  const auto backend = make_cpu_backend(1);
  // The first row has mean 3 and deviation 2; all numbers of the second are equal.
  const std::vector<float> x = {1, 5, 1, 5, 7, 7, 7, 7};
  const auto cut = [&](float deviations) {
    const Tensor rows = test::tensor_of(*backend, x, {2, 4});
    backend->cut_below(rows.view(), deviations);
    return test::floats_of(*backend, rows.view());
  };
  CHECK(cut(0.5f) == std::vector<float>{0, 1, 0, 1, 0, 0, 0, 0});
  CHECK(cut(-2.0f) == std::vector<float>{2, 6, 2, 6, 0, 0, 0, 0});
  CHECK(cut(3.0f) == std::vector<float>(8, 0.0f));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor rows = test::tensor_of(*backend, std::vector<float>{1, nan, 3, 4}, {1, 4});
  backend->cut_below(rows.view(), 1.0f);
  for (const float value : test::floats_of(*backend, rows.view())) CHECK(std::isnan(value));
}

}  // namespace fp8kv
