// Products with FP8 weights in place, against products with decoded ones.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/backends/compare.h"
#include "support/backends/gpu_backends.h"
#include "support/backends/linear_case.h"
#include "support/backends/quantised_on_backend.h"

namespace fp8kv {
namespace {

// Three products of x in one call; the second has a bias and accumulates.
std::vector<float> products(Backend& backend, DType dtype, int64_t rows,
                            std::vector<Projection> projections) {
  const int64_t dim = projections[0].weight.shape[1], out_dim = projections[0].weight.shape[0];
  const Tensor x =
      test::put(backend, test::random_values(3, rows * dim, dtype), dtype, {rows, dim});
  const Tensor bias = test::put(backend, test::random_values(4, out_dim, dtype), dtype, {out_dim});
  std::vector<Tensor> outs;
  for (size_t i = 0; i < projections.size(); ++i) {
    outs.push_back(
        test::put(backend, test::random_values(5, rows * out_dim, dtype), dtype, {rows, out_dim}));
    projections[i].out = outs.back().view();
  }
  projections[1].bias = bias.view();
  projections[1].accumulate = true;
  backend.linear(x.view(), projections);
  std::vector<float> all;
  for (const Tensor& out : outs) {
    const std::vector<float> values = test::get(backend, out.view());
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

}  // namespace

TEST_CASE("gpu coded weights: products have the bits of decoded ones") {
  for (test::QuantisedCase& quantised : test::wide_quantised_cases()) {
    CAPTURE(quantised.name);
    const bool is_fp8 = quantised.matrix.codes_as == WeightCodes::e4m3fn ||
                        quantised.matrix.codes_as == WeightCodes::e5m2;
    test::on_every_backend([&](Backend& backend) {
      const test::OnBackend there(backend, quantised);
      const Shape shape{there.matrix().rows, there.matrix().columns};
      std::vector<Tensor> storage;
      CHECK_FALSE(backend.in_place(there.matrix(), DType::f32, WeightUse::linear, storage));
      CHECK_FALSE(backend.in_place(there.matrix(), DType::bf16, WeightUse::experts, storage));
      for (const DType dtype : {DType::f16, DType::bf16}) {
        const auto codes = backend.in_place(there.matrix(), dtype, WeightUse::linear, storage);
        CHECK(codes.has_value() == is_fp8);
        if (!codes) continue;
        const Tensor decoded = backend.allocate(dtype, shape);
        backend.decode_weights(there.matrix(), decoded.view());
        Projection plain, coded;
        plain.weight = decoded.view();
        coded.weight = {nullptr, dtype, shape};
        coded.codes = codes;
        // One warp per column, then small and large tiles.
        for (const int64_t rows : {1, 2, 3, 4, 5, 16}) {
          CAPTURE(rows);
          const std::vector<float> expected = products(backend, dtype, rows, {plain, plain, plain});
          CHECK(products(backend, dtype, rows, {coded, coded, coded}) == expected);
          CHECK(products(backend, dtype, rows, {coded, plain, coded}) == expected);
        }
        CHECK(products(backend, dtype, 40, {coded, plain, coded}).size() == 3 * 40 * 72);
      }
    });
  }
}

TEST_CASE("gpu coded weights: a code that is no number makes none") {
  test::QuantisedCase quantised = test::wide_quantised_cases().front();
  quantised.codes[0] = 0x7F;
  test::on_every_backend([&](Backend& backend) {
    const test::OnBackend there(backend, quantised);
    std::vector<Tensor> storage;
    Projection coded;
    coded.weight = {nullptr, DType::bf16, Shape{there.matrix().rows, there.matrix().columns}};
    coded.codes = backend.in_place(there.matrix(), DType::bf16, WeightUse::linear, storage);
    for (const int64_t rows : {2, 9}) {
      const std::vector<float> found = products(backend, DType::bf16, rows, {coded, coded, coded});
      CHECK(std::isnan(found[0]));
      CHECK(std::isfinite(found[1]));
    }
  });
}

}  // namespace fp8kv
