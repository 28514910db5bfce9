// Routers on the CPU, and two small ops beside experts: the largest magnitude and gates of rows.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "support/backends/cpu.h"

namespace fp8kv {
namespace {

struct Chosen {
  std::vector<int32_t> ids;
  std::vector<float> weights;
  std::vector<uint64_t> counts;
};

Chosen route(const std::vector<std::vector<float>>& logits, const Routing& routing,
             const std::vector<float>& bias = {}, const std::vector<float>& factors = {},
             const std::vector<int32_t>& given = {}) {
  const auto backend = make_cpu_backend(2);
  const auto n = static_cast<int64_t>(logits.size());
  const auto count = static_cast<int64_t>(logits[0].size());
  std::vector<float> flat;
  for (const auto& row : logits) flat.insert(flat.end(), row.begin(), row.end());
  const Tensor rows = test::tensor_of(*backend, flat, {n, count});
  const Shape shape{n, routing.per_token};
  const Tensor ids = backend->allocate(DType::i32, shape);
  const Tensor weights = backend->allocate(DType::f32, shape);
  const Tensor counts = backend->allocate(DType::u64, Shape{count});
  std::optional<Tensor> choice, factor, table;
  RouterTerms terms;
  if (!bias.empty()) {
    choice = test::tensor_of(*backend, bias, {count});
    terms.choice_bias = choice->view();
  }
  if (!factors.empty()) {
    factor = test::tensor_of(*backend, factors, {count});
    terms.factors = factor->view();
  }
  if (!given.empty()) {
    table = test::tensor_of(*backend, given, shape);
    terms.given = table->view();
  }
  backend->route(rows.view(), routing, terms, {ids.view(), weights.view(), counts.view()});
  Chosen chosen;
  chosen.ids.resize(static_cast<size_t>(shape.elements()));
  backend->download(ids.view(), std::as_writable_bytes(std::span(chosen.ids)));
  chosen.weights = test::floats_of(*backend, weights.view());
  chosen.counts.resize(static_cast<size_t>(count));
  backend->download(counts.view(), std::as_writable_bytes(std::span(chosen.counts)));
  return chosen;
}

using Ids = std::vector<int32_t>;

}  // namespace

TEST_CASE("route: softmax over all, then the likeliest") {
  const Chosen chosen = route({{1, 3, 2, 0}, {0, 0, 0, std::log(2.0f)}}, {.per_token = 2});
  CHECK(chosen.ids == Ids{1, 2, 0, 3});
  const double all = std::exp(1.0) + std::exp(3.0) + std::exp(2.0) + 1;
  CHECK(chosen.weights[0] == doctest::Approx(std::exp(3.0) / all));
  CHECK(chosen.weights[1] == doctest::Approx(std::exp(2.0) / all));
  CHECK(chosen.weights[2] == doctest::Approx(0.2));
  CHECK(chosen.weights[3] == doctest::Approx(0.4));
  CHECK(chosen.counts == std::vector<uint64_t>{1, 1, 1, 1});
}

TEST_CASE("route: sparse_mixer weighs each expert against those near it that are not chosen yet") {
  const Routing routing{.per_token = 2, .score = RouterScore::sparse_mixer, .near = 0.2};
  const Chosen positive = route({{1.9f, 2, 1, -3}}, routing);
  CHECK(positive.ids == Ids{0, 1});
  CHECK(positive.weights[1] == doctest::Approx(1 / (1 + std::exp(-0.1))));  // chosen first
  CHECK(positive.weights[0] == 1.0f);                                       // 0.9 / 1.9 is too far
  // Distances of negative logits are shares of their own magnitudes.
  const Chosen negative = route({{-1, -1.1f, -4, -1.05f}}, routing);
  CHECK(negative.ids == Ids{0, 3});
  CHECK(negative.weights[0] == doctest::Approx(1 / (1 + std::exp(-0.1) + std::exp(-0.05))));
  CHECK(negative.weights[1] == doctest::Approx(1 / (1 + std::exp(-0.05))));
  const Routing exact{.per_token = 2, .score = RouterScore::sparse_mixer};
  CHECK(route({{3, 1, 3, 2}}, exact).weights == std::vector<float>{0.5f, 1});
}

TEST_CASE("route: weights are normalised, and scaled after that") {
  const Chosen chosen = route({{1, 3, 2, 0}}, {.per_token = 2, .normalise = true, .scale = 2.5});
  CHECK(chosen.weights[0] == doctest::Approx(2.5 / (1 + std::exp(-1.0))));
  const Chosen same =
      route({{1, 3, 2, 0}}, {.per_token = 2, .score = RouterScore::softmax_of_chosen});
  CHECK(same.weights[0] == doctest::Approx(1 / (1 + std::exp(-1.0))));
  // The sum of these sigmoids is 0, so only the epsilon keeps the result a number.
  const Chosen none =
      route({{-200, -200}},
            {.per_token = 1, .score = RouterScore::sigmoid, .normalise = true, .epsilon = 1e-20});
  CHECK(none.weights[0] == 0);
}

TEST_CASE("route: the bias of the choice is not in the weights") {
  const Chosen chosen =
      route({{2, 1, 0, -1}}, {.per_token = 1, .score = RouterScore::sigmoid}, {0, 0, 0, 2});
  CHECK(chosen.ids == Ids{3});
  CHECK(chosen.weights[0] == doctest::Approx(1 / (1 + std::exp(1.0))));
}

TEST_CASE("route: a bias of the choice is added to the softmax, not to the logits") {
  // The softmax is 0.64, 0.24, 0.09, 0.03.
  const Chosen chosen = route({{2, 1, 0, -1}}, {.per_token = 2}, {0, 0, 0.2f, 0});
  CHECK(chosen.ids == Ids{0, 2});
  CHECK(chosen.weights[0] == doctest::Approx(0.643914));
  CHECK(chosen.weights[1] == doctest::Approx(0.087144));
}

TEST_CASE("route: an expert's factor multiplies its weight, and chooses nothing") {
  const Chosen chosen =
      route({{1, 3, 2, 0}}, {.per_token = 2, .normalise = true}, {}, {9, 0.5f, 3, 9});
  CHECK(chosen.ids == Ids{1, 2});
  CHECK(chosen.weights[0] == doctest::Approx(0.5 / (1 + std::exp(-1.0))));
  CHECK(chosen.weights[1] == doctest::Approx(3 / (1 + std::exp(1.0))));
}

TEST_CASE("route: experts that are given are weighed by the rules, and no others are chosen") {
  const Routing routing{
      .per_token = 2, .score = RouterScore::sqrt_softplus, .normalise = true, .scale = 1.5};
  const auto score = [](double logit) { return std::sqrt(std::log1p(std::exp(logit))); };
  const Chosen chosen = route({{1, 3, 2, 0}}, routing, {}, {}, {0, 3});
  CHECK(chosen.ids == Ids{0, 3});
  CHECK(chosen.weights[0] == doctest::Approx(1.5 * score(1) / (score(1) + score(0))));
  CHECK(chosen.weights[1] == doctest::Approx(1.5 * score(0) / (score(1) + score(0))));
  CHECK(chosen.counts == std::vector<uint64_t>{1, 0, 0, 1});
}

TEST_CASE("route: the root of a softplus is a score by itself, and a bias chooses") {
  const Chosen chosen = route({{2, 1, 30, -200}},
                              {.per_token = 2, .score = RouterScore::sqrt_softplus}, {0, 0, 0, 9});
  CHECK(chosen.ids == Ids{2, 3});
  CHECK(chosen.weights[0] == doctest::Approx(std::sqrt(30.0)));
  CHECK(chosen.weights[1] == 0.0f);
}

TEST_CASE("route: a group is worth its two best experts") {
  // The first group has the best single expert, the second the best pair.
  const Routing routing{
      .per_token = 2, .score = RouterScore::sigmoid, .groups = 2, .groups_kept = 1};
  CHECK(route({{3, -3, -3, 1, 1, -3}}, routing).ids == Ids{3, 4});
}

TEST_CASE("route: the lower id comes first among equals") {
  CHECK(route({{0, 5, 1, 5, 5}}, {.per_token = 2}).ids == Ids{1, 3});
  CHECK(route({{1, 1, 1, 1}}, {.per_token = 3, .score = RouterScore::sigmoid}).ids == Ids{0, 1, 2});
  const Routing groups{
      .per_token = 1, .score = RouterScore::sigmoid, .groups = 2, .groups_kept = 1};
  CHECK(route({{1, 1, 1, 1}}, groups).ids == Ids{0});
}

TEST_CASE("route: a row with NaN has NaN for weights, and no other row has") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Chosen chosen = route({{1, 2, 3}, {1, nan, 3}, {3, 2, 1}}, {.per_token = 2});
  CHECK(chosen.ids == Ids{1, 2, 0, 1, 0, 1});
  CHECK(std::isnan(chosen.weights[2]));
  CHECK(std::isnan(chosen.weights[3]));
  for (const size_t i : {0, 1, 4, 5}) CHECK(chosen.weights[i] > 0);
}

TEST_CASE("amax: raises what is there, infinity is above numbers and NaN above infinity") {
  const auto backend = make_cpu_backend(3);
  const Tensor amax = backend->allocate(DType::u64, Shape{1});
  const auto after = [&](std::vector<float> values) {
    const auto n = static_cast<int64_t>(values.size());
    backend->amax(test::tensor_of(*backend, std::move(values), {n, 1}).view(), amax.view());
    return float_from_bits(static_cast<uint32_t>(*amax.view().as<const uint64_t>()));
  };
  CHECK(after({}) == 0);
  CHECK(after({1, -3, 2}) == 3);
  CHECK(after({2.5f, -0.0f}) == 3);
  std::vector<float> many(100'000, 1.0f);
  many[99'999] = -7;
  CHECK(after(many) == 7);
  CHECK(after({-std::numeric_limits<float>::infinity()}) == HUGE_VALF);
  CHECK(std::isnan(after({std::nanf(""), 1})));
  CHECK(std::isnan(after({std::numeric_limits<float>::infinity()})));
}

TEST_CASE("gate_rows: multiplies every row by the sigmoid of its gate") {
  const auto backend = make_cpu_backend(1);
  const Tensor x = test::tensor_of(*backend, std::vector<float>{1, 2, 3, 4}, {2, 2});
  const Tensor gates = test::tensor_of(*backend, std::vector<float>{0, std::log(3.0f)}, {2, 1});
  backend->gate_rows(x.view(), gates.view());
  const std::vector<float> out = test::floats_of(*backend, x.view());
  CHECK(out[0] == 0.5f);
  CHECK(out[1] == 1.0f);
  CHECK(out[2] == doctest::Approx(2.25));
  CHECK(out[3] == doctest::Approx(3.0));
}

}  // namespace fp8kv
