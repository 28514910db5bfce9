#include <span>
#include <string>

#include <doctest/doctest.h>

#include "core/numbers/half.h"
#include "support/backends/compare.h"
#include "support/backends/cpu.h"

namespace fp8kv {
namespace {

using test::Elements;

struct Case {
  DType dtype;
  int64_t rows;
  int64_t in_dim;
  int64_t out_dim;
};

// Blocks of at most 512 products are summed in f32, then the blocks' sums. A product, its addition,
// the sum of blocks and the bias round once each. So the error is within (512 + blocks + 3) units
// of the sum of magnitudes.
double allowed_error(double magnitudes, int64_t in_dim) {
  return (512.0 + static_cast<double>(in_dim) / 256.0 + 3.0) * test::kUnitF32 * magnitudes;
}

struct Reference {
  std::vector<double> values;
  std::vector<double> allowed;
};

Reference reference(const std::vector<float>& x, const Elements& weight, const Elements& bias,
                    const Case& c) {
  Reference result;
  for (int64_t row = 0; row < c.rows; ++row) {
    for (int64_t out = 0; out < c.out_dim; ++out) {
      double sum = bias[out];
      double magnitudes = std::abs(sum);
      for (int64_t i = 0; i < c.in_dim; ++i) {
        float input = x[row * c.in_dim + i];
        if (c.dtype == DType::bf16) input = bf16_to_float(bf16_from_float(input));
        const double product = double{input} * weight[out * c.in_dim + i];
        sum += product;
        magnitudes += std::abs(product);
      }
      result.values.push_back(sum);
      result.allowed.push_back(allowed_error(magnitudes, c.in_dim));
    }
  }
  return result;
}

std::vector<float> run_linear(Backend& backend, const std::vector<float>& x, const Elements& weight,
                              const Elements& bias, const Case& c, int64_t computed_as = 0) {
  const Tensor in = test::tensor_of(backend, x, Shape{c.rows, c.in_dim});
  const Tensor out = backend.allocate(DType::f32, Shape{c.rows, c.out_dim});
  const Projection projection{weight.view(), bias.view(), out.view()};
  backend.compute_as({computed_as});
  backend.linear(in.view(), std::span(&projection, 1));
  return test::floats_of(backend, out.view());
}

struct Inputs {
  std::vector<float> x;
  Elements weight;
  Elements bias;
};

Inputs make_inputs(const Case& c, uint64_t seed) {
  Rng rng(seed);
  const std::vector<float> x = test::random_floats(rng, c.rows * c.in_dim);
  // One byte off every alignment, which tensors in files may have.
  return {x,
          Elements(test::random_floats(rng, c.out_dim * c.in_dim), c.dtype,
                   Shape{c.out_dim, c.in_dim}, 1),
          Elements(test::random_floats(rng, c.out_dim), c.dtype, Shape{c.out_dim}, 1)};
}

}  // namespace

TEST_CASE("linear: equals a double-precision product within rounding, for every shape and type") {
  const int64_t shapes[][3] = {{1, 1, 1},    {1, 64, 32},  {1, 300, 47}, {2, 17, 33},
                               {5, 31, 1},   {14, 16, 64}, {15, 513, 8}, {16, 256, 96},
                               {17, 257, 5}, {48, 64, 40}, {513, 19, 35}};
  for (const CpuIsa isa : test::available_isas()) {
    const auto backend = make_cpu_backend(2, isa);
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      for (const auto& [rows, in_dim, out_dim] : shapes) {
        const Case c{dtype, rows, in_dim, out_dim};
        CAPTURE(std::string(cpu_isa_name(isa)));
        CAPTURE(std::string(dtype_name(dtype)));
        CAPTURE(rows);
        CAPTURE(in_dim);
        CAPTURE(out_dim);
        const Inputs in = make_inputs(c, 1);
        const Reference expected = reference(in.x, in.weight, in.bias, c);
        test::expect_close(run_linear(*backend, in.x, in.weight, in.bias, c), expected.values,
                           expected.allowed);
      }
    }
  }
}

TEST_CASE("linear: does several projections of different types and widths in one call") {
  for (const CpuIsa isa : test::available_isas()) {
    CAPTURE(std::string(cpu_isa_name(isa)));
    const auto backend = make_cpu_backend(3, isa);
    const Case first{DType::bf16, 20, 70, 65};
    const Case second{DType::f16, 20, 70, 10};
    const Inputs a = make_inputs(first, 2);
    const Inputs b = make_inputs(second, 3);
    const Tensor x = test::tensor_of(*backend, a.x, Shape{20, 70});
    const Tensor out_a = backend->allocate(DType::f32, Shape{20, 65});
    const Tensor out_b = backend->allocate(DType::f32, Shape{20, 10});
    const Projection both[] = {{a.weight.view(), a.bias.view(), out_a.view()},
                               {b.weight.view(), b.bias.view(), out_b.view()}};
    backend->linear(x.view(), both);
    CHECK(test::floats_of(*backend, out_a.view()) ==
          run_linear(*backend, a.x, a.weight, a.bias, first));
    CHECK(test::floats_of(*backend, out_b.view()) ==
          run_linear(*backend, a.x, b.weight, b.bias, second));
  }
}

TEST_CASE("linear: adds to what is there when told to accumulate") {
  for (const CpuIsa isa : test::available_isas()) {
    CAPTURE(std::string(cpu_isa_name(isa)));
    const auto backend = make_cpu_backend(2, isa);
    const Case c{DType::f32, 3, 40, 37};
    const Inputs in = make_inputs(c, 4);
    Rng rng(5);
    const std::vector<float> before = test::random_floats(rng, c.rows * c.out_dim);
    const Tensor x = test::tensor_of(*backend, in.x, Shape{c.rows, c.in_dim});
    const Tensor out = test::tensor_of(*backend, before, Shape{c.rows, c.out_dim});
    const Projection projection{in.weight.view(), in.bias.view(), out.view(), true};
    backend->linear(x.view(), std::span(&projection, 1));
    std::vector<float> expected = run_linear(*backend, in.x, in.weight, in.bias, c);
    for (size_t i = 0; i < expected.size(); ++i) expected[i] = before[i] + expected[i];
    CHECK(test::floats_of(*backend, out.view()) == expected);
  }
}

// A power of two changes no bit of a product, so no bit may be lost at either end of a range.
TEST_CASE("linear: a row times a power of two gives the same bits times that") {
  for (const CpuIsa isa : test::available_isas()) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      CAPTURE(std::string(cpu_isa_name(isa)));
      CAPTURE(std::string(dtype_name(dtype)));
      const auto backend = make_cpu_backend(2, isa);
      const Case c{dtype, 21, 300, 33};
      const Inputs in = make_inputs(c, 8);
      const Elements no_bias(std::vector<float>(33), dtype, Shape{33});
      const auto scaled = [&](std::vector<float> values, int64_t columns, int sign) {
        for (size_t i = 0; i < values.size(); ++i) {
          const auto row = static_cast<int>(static_cast<int64_t>(i) / columns);
          values[i] = std::ldexp(values[i], sign * (row * 5 - 50));
        }
        return values;
      };
      const std::vector<float> expected = run_linear(*backend, in.x, in.weight, no_bias, c);
      const std::vector<float> found =
          run_linear(*backend, scaled(in.x, 300, 1), in.weight, no_bias, c);
      CHECK(scaled(found, 33, -1) == expected);
    }
  }
}

// Few rows go one way, more rows another (cpu_linear.h). Within each way, other rows do not matter.
TEST_CASE("linear: a row has the same bits whatever rows are beside it") {
  for (const CpuIsa isa : test::available_isas()) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      CAPTURE(std::string(cpu_isa_name(isa)));
      CAPTURE(std::string(dtype_name(dtype)));
      const auto backend = make_cpu_backend(2, isa);
      const Inputs in = make_inputs({dtype, 61, 700, 70}, 6);
      const auto rows_from = [&](int64_t row, int64_t count, int64_t computed_as = 0) {
        const std::vector<float> x(in.x.begin() + row * 700, in.x.begin() + (row + count) * 700);
        return run_linear(*backend, x, in.weight, in.bias, {dtype, count, 700, 70}, computed_as);
      };
      const auto row_of = [](const std::vector<float>& rows, int64_t row) {
        return std::vector<float>(rows.begin() + row * 70, rows.begin() + (row + 1) * 70);
      };
      const std::vector<float> all = rows_from(0, 61);
      const std::vector<float> four = rows_from(28, 4);
      for (const int64_t row : {28, 29, 31}) {
        CHECK(row_of(rows_from(row, 17), 0) == row_of(all, row));
        CHECK(rows_from(row, 1) == row_of(four, row - 28));
      }
      CHECK(row_of(rows_from(29, 2), 1) == row_of(four, 2));
      CHECK(row_of(rows_from(29, 3), 2) == row_of(four, 3));
      CHECK(row_of(rows_from(20, 16), 9) == row_of(four, 1));
      // All steps computed as one size go one way, whatever their own size.
      for (const int64_t size : {1, 64, 65, 512}) {
        const std::vector<float> named = rows_from(0, 61, size);
        CHECK(rows_from(28, 1, size) == row_of(named, 28));
        CHECK(row_of(rows_from(27, 20, size), 1) == row_of(named, 28));
        CHECK(row_of(named, 28) == (size <= 64 ? row_of(four, 0) : row_of(all, 28)));
      }
      const MatrixUnit* unit = cpu_kernels(isa).matrix_unit;
      const bool one_way = unit != nullptr &&
                           (dtype == DType::bf16 || (dtype == DType::f16 && unit->f16 != nullptr));
      if (one_way) CHECK(row_of(all, 28) == row_of(four, 0));
    }
  }
}

TEST_CASE("linear: has the same bits for any number of threads, and every time") {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    CAPTURE(std::string(dtype_name(dtype)));
    const Case c{dtype, 77, 530, 203};
    const Inputs in = make_inputs(c, 7);
    const auto single = make_cpu_backend(1);
    const std::vector<float> expected = run_linear(*single, in.x, in.weight, in.bias, c);
    for (const int threads : {1, 2, 3, 4}) {
      const auto backend = make_cpu_backend(threads);
      for (int repeat = 0; repeat < 3; ++repeat) {
        CHECK(run_linear(*backend, in.x, in.weight, in.bias, c) == expected);
      }
    }
  }
}

}  // namespace fp8kv
