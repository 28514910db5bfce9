// Every op but attention and rope_append, on every GPU backend that runs here, at sizes that are
// not multiples of anything. Results are compared with double precision where rounding differs.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"
#include "base/rng.h"
#include "support/backends/activations.h"
#include "support/backends/compare.h"
#include "support/backends/gpu_backends.h"
#include "support/backends/linear_case.h"
#include "support/expect_error.h"

namespace fp8kv {
namespace {

using test::allowed;
using test::bytes_of;
using test::check_linear;
using test::get;
using test::kComputeTypes;
using test::on_every_backend;
using test::on_every_backend_and_type;
using test::put;
using test::random_values;

}  // namespace

TEST_CASE("gpu embed: gathers rows of any type as any type") {
  on_every_backend_and_type([](Backend& backend, DType dtype) {
    for (const DType out_type : kComputeTypes) {
      const std::vector<float> table = random_values(1, 5 * 37, dtype);
      const Tensor out = backend.allocate(out_type, {4, 37});
      const std::vector<int32_t> ids = {4, 0, 3, 4};
      backend.embed(put(backend, table, dtype, {5, 37}).view(), put(backend, ids, {4}).view(),
                    out.view());
      std::vector<float> expected;
      for (const int32_t id : ids) {
        for (int i = 0; i < 37; ++i) {
          expected.push_back(test::rounded_to(table[static_cast<size_t>(id * 37 + i)], out_type));
        }
      }
      CHECK(get(backend, out.view()) == expected);
    }
  });
}

TEST_CASE("gpu arrange: every element comes from where the steps lead") {
  on_every_backend_and_type([](Backend& backend, DType dtype) {
    constexpr int64_t kRows = 70, kColumns = 133;
    const std::vector<float> from = random_values(1, kRows * kColumns, dtype);
    const Tensor in = put(backend, from, dtype, {kRows * kColumns});
    const Tensor out = backend.allocate(dtype, {kColumns, kRows});
    backend.arrange(in.view(), {1, kColumns}, out.view());
    std::vector<float> expected;
    for (int64_t i = 0; i < kColumns; ++i) {
      for (int64_t j = 0; j < kRows; ++j) {
        expected.push_back(from[static_cast<size_t>(j * kColumns + i)]);
      }
    }
    CHECK(get(backend, out.view()) == expected);
  });
}

TEST_CASE("gpu norm: equals double precision within rounding, in place too") {
  on_every_backend_and_type([](Backend& backend, DType dtype) {
    // More rows than a block has warps. Dimensions lie on both sides of the switch to one block per
    // row.
    constexpr int64_t kRows = 11;
    for (const NormKind kind : {NormKind::rms, NormKind::layer}) {
      for (const int64_t dim : {1, 7, 33, 64, 100, 128, 136, 256, 264, 2056}) {
        CAPTURE((kind == NormKind::rms));
        CAPTURE(dim);
        const bool layer = kind == NormKind::layer;
        const std::vector<float> x = random_values(2, kRows * dim, dtype);
        const int64_t kinds = dim == 128 ? 3 : 1;  // kinds of rows, each with weights of its own
        const DType of_weights = dim == 33 || dim == 256 ? DType::f32 : dtype;
        const std::vector<float> weight = random_values(3, kinds * dim, of_weights);
        const std::vector<float> bias = random_values(8, dim, of_weights);
        const Tensor in = put(backend, x, dtype, {kRows, dim});
        const Tensor out = backend.allocate(dtype, {kRows, dim});
        const Tensor weights = put(backend, weight, of_weights, {kinds, dim});
        const Tensor biases = put(backend, bias, of_weights, {dim});
        Norm norm{.kind = kind,
                  .eps = 1e-5f,
                  .weight_offset = dim % 8 == 0 ? 1.0f : 0.0f,
                  .weight = weights.view()};
        if (layer && dim != 100) norm.bias = biases.view();
        backend.norm(in.view(), norm, out.view());
        std::vector<double> expected, tolerance;
        for (int64_t row = 0; row < kRows; ++row) {
          const float* from = x.data() + row * dim;
          double mean = 0, squares = 0;
          if (layer) mean = std::accumulate(from, from + dim, 0.0) / static_cast<double>(dim);
          for (int64_t i = 0; i < dim; ++i) squares += std::pow(from[i] - mean, 2);
          const double factor = 1 / std::sqrt(squares / static_cast<double>(dim) + double{1e-5f});
          for (int64_t i = 0; i < dim; ++i) {
            const float own = weight[static_cast<size_t>(row % kinds * dim + i)];
            const double by = factor * (own + double{norm.weight_offset});
            expected.push_back((from[i] - mean) * by + (norm.bias ? bias[i] : 0));
            // Partial sums of dim / 256 squares, the tree over a block, then a handful. The mean is
            // off by as many roundings of values within 1; with one element it is the whole error.
            const double roundings = static_cast<double>(dim) / 256 + 32;
            const double size = std::abs(expected.back()) + (layer ? std::abs(by) + 1 : 0);
            tolerance.push_back(allowed(size, expected.back(), roundings, dtype));
          }
        }
        const std::vector<float> result = get(backend, out.view());
        test::expect_close(result, expected, tolerance);
        backend.norm(in.view(), norm, in.view());
        CHECK(get(backend, in.view()) == result);
      }
    }
  });
}

TEST_CASE("gpu activate: equals every activation within rounding, with a gate and without") {
  on_every_backend_and_type([](Backend& backend, DType dtype) {
    for (const test::NamedActivation& named : test::activations()) {
      CAPTURE(named.name);
      for (const int64_t width : {1, 33, 512}) {
        std::vector<float> x = random_values(4, 3 * width, dtype);
        for (float& value : x) value *= 16;
        const std::vector<float> ups = random_values(5, 3 * width, dtype);
        const Tensor gated = put(backend, x, dtype, {3, width});
        const Tensor plain = put(backend, x, dtype, {3, width});
        backend.activate(named.activation, gated.view(),
                         put(backend, ups, dtype, {3, width}).view());
        backend.activate(named.activation, plain.view(), std::nullopt);
        std::vector<double> expected, expected_gated, tolerance, tolerance_gated;
        for (size_t i = 0; i < x.size(); ++i) {
          const double value = named.of(double{x[i]});
          const double error = 2 * named.error(double{x[i]}, 0x1p-24);
          expected.push_back(value);
          expected_gated.push_back(value * ups[i]);
          tolerance.push_back(error + allowed(0, value, 1, dtype));
          tolerance_gated.push_back(error * std::abs(ups[i]) +
                                    allowed(0, expected_gated.back(), 1, dtype));
        }
        test::expect_close(get(backend, plain.view()), expected, tolerance);
        test::expect_close(get(backend, gated.view()), expected_gated, tolerance_gated);
      }
    }
  });
}

TEST_CASE("gpu add and scale: equal double precision within rounding") {
  on_every_backend_and_type([](Backend& backend, DType dtype) {
    for (const int64_t width : {1, 33, 512}) {
      const Shape shape{3, width};
      const std::vector<float> x = random_values(6, 3 * width, dtype);
      const std::vector<float> y = random_values(7, 3 * width, dtype);
      const Tensor sum = put(backend, x, dtype, shape), scaled = put(backend, x, dtype, shape);
      const Tensor capped = put(backend, x, dtype, shape);
      backend.add(sum.view(), put(backend, y, dtype, shape).view(), 0.375f);
      backend.scale(scaled.view(), 7.0f, 0.0f);
      backend.scale(capped.view(), 7.0f, 2.0f);
      const auto check = [&](const Tensor& actual, const auto& of) {
        std::vector<double> expected, tolerance;
        for (size_t i = 0; i < x.size(); ++i) {
          expected.push_back(of(double{x[i]}, double{y[i]}));
          // Roundings in f32: a sum takes two of values within 1.4, a product by 7 takes one. tanh
          // is within two units in the last place, which is 4 roundings. Its argument is off by
          // two, and x tanh'(x) < 0.45. Times 2 that makes 8 |tanh| + 1.8 roundings of 1; 8.5 + 2
          // |tanh| are allowed.
          tolerance.push_back(allowed(2.0, expected.back(), 4, dtype));
        }
        test::expect_close(get(backend, actual.view()), expected, tolerance);
      };
      check(sum, [](double a, double b) { return a + 0.375 * b; });
      check(scaled, [](double a, double) { return 7 * a; });
      check(capped, [](double a, double) { return 2 * std::tanh(7 * a / 2); });
    }
  });
}

TEST_CASE("gpu gate_rows: equals double precision within rounding") {
  on_every_backend_and_type([](Backend& backend, DType dtype) {
    constexpr int64_t kRows = 7, kDim = 45;
    const std::vector<float> x = random_values(1, kRows * kDim, dtype);
    std::vector<float> gates = random_values(2, kRows, DType::f32);
    for (float& gate : gates) gate *= 20;
    const Tensor there = put(backend, x, dtype, {kRows, kDim});
    backend.gate_rows(there.view(), put(backend, gates, DType::f32, {kRows, 1}).view());
    std::vector<double> expected, tolerance;
    for (int64_t i = 0; i < kRows * kDim; ++i) {
      const double gate = gates[static_cast<size_t>(i / kDim)];
      expected.push_back(x[static_cast<size_t>(i)] / (1 + std::exp(-gate)));
      // exp is within 4 roundings; then a sum and a quotient.
      tolerance.push_back(allowed(std::abs(expected.back()), expected.back(), 6, dtype));
    }
    test::expect_close(get(backend, there.view()), expected, tolerance);
  });
}

TEST_CASE("gpu amax: the bits of the largest magnitude, raised and never lowered") {
  on_every_backend_and_type([](Backend& backend, DType dtype) {
    for (const int64_t width : {5, 640}) {  // not in vectors, and in vectors
      const Tensor largest = backend.allocate(DType::u64, {1});
      const auto raised_by = [&](float most) {
        std::vector<float> x = random_values(3, 3 * width, dtype);
        x[static_cast<size_t>(2 * width + 1)] = most;
        backend.amax(put(backend, x, dtype, {3, width}).view(), largest.view());
        uint64_t bits = 0;
        backend.download(largest.view(), std::as_writable_bytes(std::span(&bits, 1)));
        return bits;
      };
      CHECK(raised_by(-2.5f) == float_bits(2.5f));
      CHECK(raised_by(1.5f) == float_bits(2.5f));
      CHECK(raised_by(-INFINITY) == float_bits(INFINITY));
      CHECK(raised_by(NAN) > float_bits(INFINITY));
      CHECK(raised_by(100.0f) > float_bits(INFINITY));
    }
  });
}

TEST_CASE("gpu linear: equals double precision for few rows, many rows and odd shapes") {
  on_every_backend_and_type([](Backend& backend, DType dtype) {
    for (const int64_t rows : {1, 2, 3, 4}) check_linear(backend, dtype, {rows, 264, {35, 8, 1}});
    check_linear(backend, dtype, {5, 40, {70, 3, 65}});
    check_linear(backend, dtype, {32, 32, {64}});
    check_linear(backend, dtype, {33, 136, {129, 5}});
    check_linear(backend, dtype, {130, 72, {131}});
    check_linear(backend, dtype, {1, 1, {1}});
    check_linear(backend, dtype, {7, 19, {65, 2}});  // rows are not whole vectors
    check_linear(backend, dtype, {2, 33, {5}});
  });
}

TEST_CASE("gpu linear: adds a bias, adds to what is there, and gives f32 when asked") {
  on_every_backend_and_type([](Backend& backend, DType dtype) {
    for (const int64_t rows : {1, 6, 40}) {
      for (const int64_t in_dim : {48, 13}) {
        check_linear(backend, dtype, {rows, in_dim, {20}, true, false, false});
        check_linear(backend, dtype, {rows, in_dim, {20}, true, true, false});
        check_linear(backend, dtype, {rows, in_dim, {20}, false, true, true});
      }
    }
  });
}

TEST_CASE("gpu linear: a row has the same bits whatever rows are beside it") {
  on_every_backend([](Backend& backend) {
    // A vendor's library takes the second product. An algorithm that it chose for one number of
    // rows must also serve others. It would split only sums of many products, if it did so.
    const auto check = [&](int64_t depth, int64_t width, DType out_type) {
      CAPTURE(width);
      const std::vector<float> x = random_values(6, 200 * depth, DType::f16);
      const Tensor weight =
          put(backend, random_values(7, width * depth, DType::f16), DType::f16, {width, depth});
      const auto first_row = [&](int64_t rows, int64_t computed_as) {
        const Tensor in = put(backend, std::vector<float>(x.begin(), x.begin() + rows * depth),
                              DType::f16, {rows, depth});
        const Tensor out = backend.allocate(out_type, {rows, width});
        backend.compute_as({computed_as, 1});
        backend.linear(in.view(), std::array{Projection{weight.view(), {}, out.view()}});
        const std::vector<float> all = get(backend, out.view());
        return std::vector<float>(all.begin(), all.begin() + width);
      };
      CHECK(first_row(200, 512) == first_row(150, 512));
      CHECK(first_row(200, 512) == first_row(3, 512));
      CHECK(first_row(200, 512) == first_row(1, 512));
      CHECK(first_row(30, 40) == first_row(6, 40));
      CHECK(first_row(33, 40) == first_row(32, 40));
    };
    check(96, 130, DType::f32);
    check(test::kSimulated ? 64 : 4096, test::kSimulated ? 72 : 1024, DType::f16);
    check(test::kSimulated ? 64 : 4096, test::kSimulated ? 72 : 1024, DType::f32);
  });
}

TEST_CASE("gpu memory: holds what the host had when it was copied, whatever the host does next") {
  for (const uint64_t seed : {0, 1, 2}) {  // 1: the simulator runs everything as late as allowed
    CAPTURE(seed);
    test::set_interleaving(seed);
    on_every_backend([&](Backend& backend) {
      // More than is in flight at a time, in pieces that do not end at slots.
      std::vector<std::byte> expected(size_t{9} << 20), host;
      Rng rng(seed + 1);
      for (std::byte& each : expected) each = static_cast<std::byte>(rng.next());
      const Tensor memory = backend.allocate(DType::u8, {static_cast<int64_t>(expected.size())});
      size_t at = 0;
      for (size_t bytes = 1; at < expected.size(); at += bytes, bytes = bytes * 5 + 2) {
        bytes = std::min(bytes, expected.size() - at);
        host.assign(expected.begin() + static_cast<std::ptrdiff_t>(at),
                    expected.begin() + static_cast<std::ptrdiff_t>(at + bytes));
        const Shape shape{static_cast<int64_t>(bytes)};
        backend.copy_in({memory.view().data + at, DType::u8, shape},
                        {host.data(), DType::u8, shape});
        std::fill(host.begin(), host.end(), std::byte{0xff});
      }
      CHECK((bytes_of(backend, memory.view()) == expected));
    });
    test::set_interleaving(0);
  }
}

TEST_CASE("gpu backend: says which op was given what does not fit") {
  on_every_backend([](Backend& backend) {
    const Tensor x = backend.allocate(DType::f16, {2, 8});
    const Tensor weight = backend.allocate(DType::bf16, {8});
    CHECK(test::error_of([&] { backend.norm(x.view(), {.weight = weight.view()}, x.view()); },
                         ErrorKind::device) ==
          "norm: needs one type of f32, f16 and bf16, or f32 for the weights");
    CHECK(test::error_of(
              [&] {
                backend.linear(x.view(), std::array{Projection{x.view(), {}, x.view(), false}});
              },
              ErrorKind::device) == "linear: shapes do not fit");
  });
}

}  // namespace fp8kv
