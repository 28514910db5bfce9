// Ops of models with several residual streams, on every GPU backend that runs here, against the
// CPU.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "support/backends/activations.h"
#include "support/backends/compare.h"
#include "support/backends/gpu_backends.h"
#include "support/backends/linear_case.h"

namespace fp8kv {
namespace {

using test::get;
using test::kComputeTypes;
using test::put;
using test::random_values;

// More columns than a block has threads, and not a multiple of anything.
constexpr int64_t kRows = 3, kDim = 301;

// Compares `work` on rows x of each backend and type with the CPU's, on the same values in f32.
// Allows `roundings` of f32, and one of the type.
template <typename Work>
void check_like_cpu(int64_t width, double roundings, const Work& work) {
  for (const DType dtype : kComputeTypes) {
    CAPTURE(std::string(dtype_name(dtype)));
    const std::vector<float> x = random_values(1, kRows * width, dtype);
    const auto cpu = make_cpu_backend(1);
    const Tensor exact = put(*cpu, x, DType::f32, {kRows, width});
    work(*cpu, exact.view(), dtype);
    std::vector<double> expected, allowed;
    for (const float value : get(*cpu, exact.view())) {
      expected.push_back(double{value});
      allowed.push_back(test::allowed(8.0, double{value}, roundings, dtype));
    }
    test::on_every_backend([&](Backend& backend) {
      const Tensor rows = put(backend, x, dtype, {kRows, width});
      work(backend, rows.view(), dtype);
      test::expect_close(get(backend, rows.view()), expected, allowed);
    });
  }
}

}  // namespace

TEST_CASE("gpu scale_columns: as on the CPU") {
  check_like_cpu(kDim, 1, [](Backend& backend, const TensorView& x, DType dtype) {
    const std::vector<float> weight = random_values(2, kDim, dtype);
    backend.scale_columns(x, {put(backend, weight, x.dtype, {kDim}).view()});
  });
  check_like_cpu(kDim, 2, [](Backend& backend, const TensorView& x, DType) {
    const std::vector<float> weight = random_values(3, kDim, DType::f32);
    backend.scale_columns(x, {put(backend, weight, DType::f32, {kDim}).view(), 1.0f});
  });
}

TEST_CASE("gpu mix_streams: as on the CPU, in place too") {
  const std::vector<float> shares = random_values(3, kRows * 16, DType::f32);
  check_like_cpu(4 * kDim, 8, [&](Backend& backend, const TensorView& x, DType) {
    const TensorView streams = reshaped(x, {kRows, 4, kDim});
    backend.mix_streams(streams, put(backend, shares, DType::f32, {kRows, 16}).view(), {}, streams);
  });
  check_like_cpu(4 * kDim, 4, [&](Backend& backend, const TensorView& x, DType dtype) {
    const std::vector<float> one = random_values(4, kRows * kDim, dtype);
    const std::vector<float> four(shares.begin(), shares.begin() + kRows * 4);
    backend.mix_streams(put(backend, one, x.dtype, {kRows, 1, kDim}).view(),
                        put(backend, four, DType::f32, {kRows, 4}).view(), {.more = 1.0f},
                        reshaped(x, {kRows, 4, kDim}));
  });
  check_like_cpu(4 * kDim, 8, [&](Backend& backend, const TensorView& x, DType) {
    const TensorView streams = reshaped(x, {kRows, 4, kDim});
    backend.mix_streams(streams, put(backend, shares, DType::f32, {kRows, 16}).view(),
                        {.onto = false}, streams);
  });
}

TEST_CASE("gpu stream_gates: equals the definition in double precision") {
  constexpr int64_t kCount = 3;
  for (const DType dtype : kComputeTypes) {
    CAPTURE(std::string(dtype_name(dtype)));
    std::vector<float> keys = random_values(5, kRows * kCount * kDim, dtype);
    const std::vector<float> queries = random_values(6, kRows * kCount * kDim, dtype);
    std::fill_n(keys.begin(), kDim, 0.0f);  // a product of 0
    std::vector<double> exact, allowed;
    for (int64_t row = 0; row < kRows * kCount; ++row) {
      double product = 0, magnitudes = 0;
      for (int64_t i = row * kDim; i < (row + 1) * kDim; ++i) {
        const auto at = static_cast<size_t>(i);
        product += double{keys[at]} * double{queries[at]} / std::sqrt(double{kDim});
        magnitudes += std::abs(double{keys[at]} * double{queries[at]}) / std::sqrt(double{kDim});
      }
      const auto root = [](double x) { return std::copysign(std::sqrt(std::abs(x)), x); };
      // A lane adds up to ten products, six steps add the lanes, and the factor is rounded twice.
      // The sigmoid is never steeper than 1/4, and has a few roundings of its own.
      const double off = 20 * test::kUnitF32 * magnitudes;
      REQUIRE((row == 0 || std::abs(product) > 1e-5));  // the least product decides none
      exact.push_back(1 / (1 + std::exp(-root(product))));
      allowed.push_back((root(product + off) - root(product - off)) / 4 + 4 * test::kUnitF32);
    }
    const Shape shape{kRows, kCount, kDim};
    test::on_every_backend([&](Backend& backend) {
      const Tensor out = backend.allocate(DType::f32, Shape{kRows, kCount});
      backend.stream_gates(put(backend, keys, dtype, shape).view(),
                           put(backend, queries, dtype, shape).view(), out.view());
      test::expect_close(get(backend, out.view()), exact, allowed);
    });
  }
}

TEST_CASE("gpu hyper_shares: as on the CPU, with a scale and a base of any type") {
  constexpr int64_t kCount = 4;
  for (const DType dtype : kComputeTypes) {
    CAPTURE(std::string(dtype_name(dtype)));
    const std::vector<float> x = random_values(1, kRows * kCount * kDim, dtype);
    for (const int64_t kinds : {1, 2, 3}) {
      HyperConfig config{.count = kCount, .eps = 1e-3, .most_written = 1.5};
      if (kinds == 3) config.rounds = 5;
      config.eps_written = kinds < 3;
      const int64_t width = kinds == 1 ? kCount : config.width();
      const std::vector<float> products = random_values(2, kRows * width, DType::f32);
      const std::vector<float> scale = random_values(3, kinds, dtype);
      const std::vector<float> base = random_values(4, width, dtype);
      const auto shares = [&](Backend& backend, DType as) {
        const Tensor read = backend.allocate(DType::f32, Shape{kRows, kCount});
        const Tensor write = backend.allocate(DType::f32, Shape{kRows, kCount});
        HyperShares out{.read = read.view()};
        if (kinds > 1) out.write = write.view();
        const Tensor mix = backend.allocate(DType::f32, Shape{kRows, kCount * kCount});
        if (kinds > 2) out.mix = mix.view();
        const Tensor rows = put(backend, x, as, {kRows, kCount * kDim});
        const Tensor raw = put(backend, products, DType::f32, {kRows, width});
        const Tensor scales = put(backend, scale, as, {kinds});
        const Tensor bases = put(backend, base, as, {width});
        backend.hyper_shares({rows.view(), raw.view(), scales.view(), bases.view(), 1e-5f}, config,
                             out);
        std::vector<float> all = get(backend, read.view());
        if (kinds == 1) return all;
        const std::vector<float> written = get(backend, write.view());
        all.insert(all.end(), written.begin(), written.end());
        if (kinds == 2) return all;
        const std::vector<float> mixed = get(backend, mix.view());
        all.insert(all.end(), mixed.begin(), mixed.end());
        return all;
      };
      std::vector<double> expected, allowed;
      for (const float value : shares(*make_cpu_backend(1), DType::f32)) {
        expected.push_back(double{value});
        // Chains of five squares and 13 levels, then a product, a sum and a sigmoid.
        allowed.push_back(test::allowed(2.0, double{value}, 32, DType::f32));
      }
      test::on_every_backend(
          [&](Backend& backend) { test::expect_close(shares(backend, dtype), expected, allowed); });
    }
  }
}

TEST_CASE("gpu match_rms: as on the CPU") {
  // Two sums of 301 squares by 256 threads: chains of two, then 8 levels of lanes and warps.
  check_like_cpu(kDim, 24, [](Backend& backend, const TensorView& x, DType dtype) {
    const std::vector<float> like = random_values(5, kRows * kDim, dtype);
    backend.match_rms(x, put(backend, like, x.dtype, {kRows, kDim}).view());
  });
}

TEST_CASE("gpu xielu: as on the CPU, for rows of whole vectors and others") {
  const Xielu numbers{0.9f, 1.2f, 0.5f, -0.01f};
  // The exponential may be off by a rounding of 1, which counts most for small negative x.
  for (const int64_t width : {kDim, int64_t{256}}) {
    check_like_cpu(
        width, 8, [&](Backend& backend, const TensorView& x, DType) { backend.xielu(x, numbers); });
  }
}

TEST_CASE("gpu clamped_swiglu: as on the CPU, for rows of whole vectors and others") {
  for (const SwigluForm form :
       {SwigluForm::plus_one, SwigluForm::silu, SwigluForm::after, SwigluForm::situ}) {
    const ClampedSwiglu how{.alpha = 1.3f, .limit = 0.4f, .form = form};
    for (const int64_t width : {kDim, int64_t{256}}) {
      check_like_cpu(width, 8, [&](Backend& backend, const TensorView& x, DType dtype) {
        const std::vector<float> up = random_values(6, kRows * width, dtype);
        backend.clamped_swiglu(how, x, put(backend, up, x.dtype, {kRows, width}).view());
      });
    }
  }
}

TEST_CASE("gpu cut_below: as on the CPU") {
  check_like_cpu(kDim, 24,
                 [](Backend& backend, const TensorView& x, DType) { backend.cut_below(x, 0.25f); });
}

}  // namespace fp8kv
