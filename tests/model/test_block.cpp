// Every knob of BlockConfig against the reference model, on the CPU.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "base/log.h"
#include "calib/collect.h"
#include "support/models/block_model.h"
#include "support/models/fused_model.h"
#include "support/models/run_model.h"
#include "support/models/tiny_checkpoint.h"
#include "support/reference/reference_model.h"

namespace fp8kv {
namespace {

// The tolerance of test_model.cpp, as a share of the largest value. Ten consecutive sums of up to
// 200 terms have roundings of 2^-24 that add up by chance: 10 * sqrt(200) * 2^-24 = 8e-6. Five
// times that allows for values that grow in blocks without a norm before them. K and V come after
// half of these sums.
constexpr double kTolerance = 4e-5;

using Logits = std::vector<std::vector<double>>;

std::vector<int32_t> some_ids(int count) {
  std::vector<int32_t> ids;
  for (int i = 0; i < count; ++i) ids.push_back((i * 37 + 11) % 64);
  return ids;
}

// The largest difference, as a share of the largest logit.
double difference(const std::vector<std::vector<float>>& actual, const Logits& expected) {
  double worst = 0, largest = 0;
  REQUIRE(actual.size() == expected.size());
  for (size_t row = 0; row < actual.size(); ++row) {
    for (size_t i = 0; i < actual[row].size(); ++i) {
      worst = std::max(worst, std::abs(actual[row][i] - expected[row][i]));
      largest = std::max(largest, std::abs(expected[row][i]));
    }
  }
  return worst / largest;
}

}  // namespace

TEST_CASE("blocks: tensors of several roles give the bits of tensors of their own") {
  const std::vector<int32_t> ids = some_ids(12);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const test::BlockModel model(
        {"plain", [](test::TinyConfig& c) { c.qkv_bias = c.mlp_bias = true; }}, dtype, 8);
    const auto backend = make_cpu_backend(2);
    const auto expected = test::run_model(model.checkpoint, model.config, *backend, ids);
    const test::FusedModel fused(model);
    CHECK(test::run_model(fused.checkpoint, fused.config, *backend, ids) == expected);
  }
}

TEST_CASE("blocks: every knob gives the reference's logits") {
  const std::vector<int32_t> ids = some_ids(20);
  for (const test::BlockVariant& variant : test::block_variants()) {
    CAPTURE(variant.name);
    const test::BlockModel model(variant, DType::f32, 8);
    const auto backend = make_cpu_backend(2);
    const auto logits = test::run_model(model.checkpoint, model.config, *backend, ids);
    const Logits expected = test::reference_forward(model.checkpoint, model.config, ids).logits;
    CHECK(difference(logits, expected) < kTolerance);
  }
}

TEST_CASE("blocks: no knob is without effect on the logits") {
  const std::vector<int32_t> ids = some_ids(20);
  const test::BlockModel plain({"plain", [](test::TinyConfig&) {}}, DType::f32, 8);
  const Logits without = test::reference_forward(plain.checkpoint, plain.config, ids).logits;
  for (const test::BlockVariant& variant : test::block_variants()) {
    CAPTURE(variant.name);
    const test::BlockModel model(variant, DType::f32, 8);
    const auto backend = make_cpu_backend(2);
    CHECK(difference(test::run_model(model.checkpoint, model.config, *backend, ids), without) >
          1e-3);
  }
}

TEST_CASE("blocks: prefill and decode give the logits of one pass") {
  const std::vector<int32_t> ids = some_ids(12);
  for (const test::BlockVariant& variant : test::block_variants()) {
    CAPTURE(variant.name);
    const test::BlockModel model(variant, DType::f32, 8);
    const auto backend = make_cpu_backend(2);
    const auto whole = test::run_model(model.checkpoint, model.config, *backend, ids);
    const auto stepwise =
        test::run_model(model.checkpoint, model.config, *backend, ids, {.chunk = 1});
    Logits wide;
    for (const std::vector<float>& row : whole) wide.emplace_back(row.begin(), row.end());
    CHECK(difference(stepwise, wide) < kTolerance);
  }
}

TEST_CASE("blocks: calibration reaches the reference's magnitudes") {
  const std::vector<int32_t> ids = some_ids(20);
  Log log(Verbosity::quiet);
  for (const test::BlockVariant& variant : test::block_variants()) {
    CAPTURE(variant.name);
    const test::BlockModel model(variant, DType::f32, 8);
    const auto backend = make_cpu_backend(2);
    const auto found =
        collect_magnitudes({model.checkpoint, model.config, *backend}, {ids}, log, {});
    const test::ReferenceRun expected =
        test::reference_forward(model.checkpoint, model.config, ids);
    for (size_t layer = 0; layer < found.size(); ++layer) {
      for (size_t head = 0; head < found[layer].k.size(); ++head) {
        CHECK(double{found[layer].k[head].amax} ==
              doctest::Approx(expected.k_amax[layer][head]).epsilon(kTolerance));
        CHECK(double{found[layer].v[head].amax} ==
              doctest::Approx(expected.v_amax[layer][head]).epsilon(kTolerance));
      }
    }
  }
}

}  // namespace fp8kv
