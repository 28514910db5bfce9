// A product on a backend, against double precision.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/rng.h"
#include "support/backends/compare.h"
#include "support/backends/gpu_backends.h"

namespace fp8kv::test {

// Random values in [-1, 1), rounded to `dtype`.
inline std::vector<float> random_values(uint64_t seed, int64_t count, DType dtype) {
  Rng rng(seed);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& x : values) x = static_cast<float>(rng.uniform() * 2 - 1);
  return rounded_to(std::move(values), dtype);
}

// The error of rounding to `dtype`, and of f32 arithmetic with `roundings` steps.
inline double allowed(double magnitude, double value, double roundings, DType dtype) {
  return roundings * kUnitF32 * magnitude + unit_of(dtype) * std::abs(value) + 0x1p-25;
}

struct LinearCase {
  int64_t rows;
  int64_t in_dim;
  std::vector<int64_t> out_dims;
  bool bias = false;
  bool accumulate = false;
  bool out_f32 = false;
};

inline void check_linear(Backend& backend, DType dtype, const LinearCase& c) {
  CAPTURE(c.rows);
  CAPTURE(c.in_dim);
  const std::vector<float> x = random_values(1, c.rows * c.in_dim, dtype);
  const DType out_type = c.out_f32 ? DType::f32 : dtype;
  std::vector<std::vector<float>> weights, biases, befores;
  std::vector<Tensor> tensors;
  std::vector<Projection> projections;
  const auto keep = [&](Tensor tensor) {
    tensors.push_back(std::move(tensor));
    return tensors.back().view();
  };
  for (size_t i = 0; i < c.out_dims.size(); ++i) {
    const int64_t out_dim = c.out_dims[i];
    weights.push_back(random_values(10 + i, out_dim * c.in_dim, dtype));
    biases.push_back(random_values(20 + i, out_dim, dtype));
    befores.push_back(random_values(30 + i, c.rows * out_dim, out_type));
    Projection projection;
    projection.weight = keep(put(backend, weights[i], dtype, {out_dim, c.in_dim}));
    if (c.bias) projection.bias = keep(put(backend, biases[i], dtype, {out_dim}));
    projection.out = keep(put(backend, befores[i], out_type, {c.rows, out_dim}));
    projection.accumulate = c.accumulate;
    projections.push_back(projection);
  }
  backend.linear(keep(put(backend, x, dtype, {c.rows, c.in_dim})), projections);
  for (size_t p = 0; p < projections.size(); ++p) {
    std::vector<double> expected, tolerance;
    for (int64_t row = 0; row < c.rows; ++row) {
      for (int64_t col = 0; col < c.out_dims[p]; ++col) {
        double sum = c.bias ? biases[p][col] : 0.0;
        if (c.accumulate) sum += befores[p][row * c.out_dims[p] + col];
        double magnitude = std::abs(sum) + 1;
        for (int64_t i = 0; i < c.in_dim; ++i) {
          const double product = double{x[row * c.in_dim + i]} * weights[p][col * c.in_dim + i];
          sum += product;
          magnitude += std::abs(product);
        }
        expected.push_back(sum);
        // Every product is added once, to a sum within `magnitude`; then come bias and
        // accumulation.
        tolerance.push_back(allowed(magnitude, sum, static_cast<double>(c.in_dim) + 3, out_type));
      }
    }
    expect_close(get(backend, projections[p].out), expected, tolerance);
  }
}

}  // namespace fp8kv::test
