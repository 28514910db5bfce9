// Routers and experts on every GPU backend that runs here: against the CPU's choices, and for equal
// bits of a row whatever is beside it.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "base/rng.h"
#include "checkpoint/model/read_model_config.h"
#include "support/backends/activations.h"
#include "support/backends/gpu_backends.h"
#include "support/backends/linear_case.h"
#include "support/models/goldens.h"
#include "support/models/run_model.h"

namespace fp8kv {
namespace {

using test::get;
using test::put;
using test::random_values;

struct Chosen {
  std::vector<int32_t> ids;
  std::vector<float> weights;
  std::vector<uint64_t> counts;
};

template <typename T>
std::vector<T> contents(Backend& backend, const TensorView& view) {
  std::vector<T> values(static_cast<size_t>(view.shape.elements()));
  backend.download(view, std::as_writable_bytes(std::span(values)));
  return values;
}

Chosen route(Backend& backend, const std::vector<float>& logits, int64_t count,
             const Routing& routing, const std::vector<float>& bias) {
  const int64_t n = std::ssize(logits) / count;
  const Tensor in = put(backend, logits, DType::f32, {n, count});
  const Tensor choice = put(backend, bias, DType::bf16, {count});
  const Tensor factors = put(backend, random_values(5, count, DType::bf16), DType::bf16, {count});
  const Shape shape{n, routing.per_token};
  const Tensor ids = backend.allocate(DType::i32, shape);
  const Tensor weights = backend.allocate(DType::f32, shape);
  const Tensor counts = backend.allocate(DType::u64, Shape{count});
  backend.route(in.view(), routing, {choice.view(), factors.view()},
                {ids.view(), weights.view(), counts.view()});
  return {contents<int32_t>(backend, ids.view()), contents<float>(backend, weights.view()),
          contents<uint64_t>(backend, counts.view())};
}

// Two routings of each kind, with fewer and with more experts than a warp has lanes.
const Routing kRoutings[] = {
    {.per_token = 2},
    {.per_token = 5, .normalise = true, .scale = 2.5},
    {.per_token = 3, .score = RouterScore::softmax_of_chosen},
    {.per_token = 4, .score = RouterScore::sigmoid, .normalise = true, .epsilon = 1e-20},
    {.per_token = 3, .score = RouterScore::sigmoid, .scale = 1.5, .groups = 3, .groups_kept = 2},
    {.per_token = 2, .score = RouterScore::sparse_mixer, .near = 0.3},
};

}  // namespace

TEST_CASE("gpu route: chooses what the CPU chooses, the lower id among equals") {
  for (const int64_t count : {6, 96}) {
    std::vector<float> logits = random_values(3, 40 * count, DType::f32);
    for (int64_t i = 0; i < 10 * count; ++i) {  // ties
      float& logit = logits[static_cast<size_t>(i)];
      logit = std::round(logit * 2);
    }
    logits[static_cast<size_t>(7 * count + 2)] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> bias = random_values(4, count, DType::bf16);
    for (const Routing& routing : kRoutings) {
      const auto cpu = make_cpu_backend(1);
      const Chosen expected = route(*cpu, logits, count, routing, bias);
      test::on_every_backend([&](Backend& backend) {
        const Chosen actual = route(backend, logits, count, routing, bias);
        CHECK(actual.ids == expected.ids);
        CHECK(actual.counts == expected.counts);
        for (size_t i = 0; i < expected.weights.size(); ++i) {
          // The error of exponentials and a sum of at most 96 of them, each within a few units of
          // 2^-24.
          const bool same = std::isnan(expected.weights[i])
                                ? std::isnan(actual.weights[i])
                                : std::abs(actual.weights[i] - expected.weights[i]) <= 1e-5f;
          CHECK(same);
        }
      });
    }
  }
}

// Biases of gate, up and down, for all experts.
struct Biases {
  Biases(Backend& backend, DType dtype, int64_t count, int64_t hidden_dim, int64_t dim)
      : gate(
            put(backend, random_values(40, count * hidden_dim, dtype), dtype, {count, hidden_dim})),
        up(put(backend, random_values(41, count * hidden_dim, dtype), dtype, {count, hidden_dim})),
        down(put(backend, random_values(42, count * dim, dtype), dtype, {count, dim})) {}
  ExpertBiases views() const { return {gate.view(), up.view(), down.view()}; }

  Tensor gate, up, down;
};
constexpr ClampedSwiglu kClamped{.alpha = 1.3f, .limit = 0.8f};

TEST_CASE("gpu experts: give the CPU's sums, and a row the same bits whatever is beside it") {
  constexpr int64_t kRows = 150, kCount = 5, kDim = 37, kHidden = 70, kChosen = 2;
  for (size_t turn = 0; turn < 15; ++turn) {
    const DType dtype = test::kComputeTypes[turn / 5];
    const bool weigh_input = turn % 5 % 2 == 1, changed = turn % 5 / 2 == 1, gated = turn % 5 < 4;
    CAPTURE(gated);
    CAPTURE(std::string(dtype_name(dtype)));
    CAPTURE(weigh_input);
    CAPTURE(changed);
    const std::vector<float> x = random_values(1, kRows * kDim, dtype);
    const std::vector<float> weights = random_values(2, kRows * kChosen, DType::f32);
    std::vector<int32_t> ids;
    for (int32_t row = 0; row < kRows; ++row) {  // most go to two of them, none to the fourth
      ids.push_back(row % 7 == 0 ? 1 : 0);
      ids.push_back(row % 5 == 0 ? 4 : 2);
    }
    const auto run = [&](Backend& backend, int64_t first, int64_t rows) {
      std::vector<Tensor> matrices;
      std::vector<uint64_t> addresses;
      for (uint64_t i = 0; i < 3 * kCount; ++i) {
        const Shape shape = i < 2 * kCount ? Shape{kHidden, kDim} : Shape{kDim, kHidden};
        matrices.push_back(
            put(backend, random_values(10 + i, kHidden * kDim, dtype), dtype, shape));
        addresses.push_back(reinterpret_cast<uintptr_t>(matrices.back().view().data));
      }
      const Tensor table = backend.allocate(DType::u64, {3, kCount});
      backend.copy_in(table.view(), {reinterpret_cast<const std::byte*>(addresses.data()),
                                     DType::u64, table.view().shape});
      const auto part = [&](const auto& all, int64_t width) {
        return std::vector(all.begin() + first * width, all.begin() + (first + rows) * width);
      };
      const Tensor in = put(backend, part(x, kDim), dtype, {rows, kDim});
      const Tensor chosen = put(backend, part(ids, kChosen), {rows, kChosen});
      const Tensor counted = put(backend, part(weights, kChosen), DType::f32, {rows, kChosen});
      const Tensor out = backend.allocate(dtype, {rows, kDim});
      const Biases biases(backend, dtype, kCount, kHidden, kDim);
      ExpertMatrices experts{table.view(), dtype, kHidden, Activation::silu, weigh_input};
      if (changed) {
        experts.biases = biases.views();
        experts.swiglu = kClamped;
      }
      if (!gated) {
        experts.gated = false;
        experts.activation = Activation::relu_squared;
      }
      backend.experts(in.view(), {chosen.view(), counted.view(), {}}, experts, out.view());
      return get(backend, out.view());
    };
    const auto on_cpu = [&] {
      // The CPU holds activations in f32.
      const auto cpu = make_cpu_backend(1);
      std::vector<Tensor> matrices;
      std::vector<uint64_t> addresses;
      for (uint64_t i = 0; i < 3 * kCount; ++i) {
        const Shape shape = i < 2 * kCount ? Shape{kHidden, kDim} : Shape{kDim, kHidden};
        matrices.push_back(put(*cpu, random_values(10 + i, kHidden * kDim, dtype), dtype, shape));
        addresses.push_back(reinterpret_cast<uintptr_t>(matrices.back().view().data));
      }
      const Tensor table = cpu->allocate(DType::u64, {3, kCount});
      cpu->copy_in(table.view(), {reinterpret_cast<const std::byte*>(addresses.data()), DType::u64,
                                  table.view().shape});
      const Tensor in = put(*cpu, x, DType::f32, {kRows, kDim});
      const Tensor chosen = put(*cpu, ids, {kRows, kChosen});
      const Tensor counted = put(*cpu, weights, DType::f32, {kRows, kChosen});
      const Tensor out = cpu->allocate(DType::f32, {kRows, kDim});
      const Biases biases(*cpu, dtype, kCount, kHidden, kDim);
      ExpertMatrices experts{table.view(), dtype, kHidden, Activation::silu, weigh_input};
      if (changed) {
        experts.biases = biases.views();
        experts.swiglu = kClamped;
      }
      if (!gated) {
        experts.gated = false;
        experts.activation = Activation::relu_squared;
      }
      cpu->experts(in.view(), {chosen.view(), counted.view(), {}}, experts, out.view());
      return get(*cpu, out.view());
    };
    const std::vector<float> expected = on_cpu();
    double largest = 0;
    for (const float value : expected) largest = std::max(largest, std::abs(double{value}));
    test::on_every_backend([&](Backend& backend) {
      const std::vector<float> all = run(backend, 0, kRows);
      double worst = 0;
      for (size_t i = 0; i < all.size(); ++i) {
        worst = std::max(worst, std::abs(double{all[i]} - expected[i]));
      }
      // Errors of 70 sums of 37 products; in 16 bits also the rounding of hidden values and of the
      // result.
      CHECK(worst / largest <
            (dtype == DType::f32 ? 70 * test::unit_of(dtype) : 4 * test::unit_of(dtype)));
      for (const auto& [first, rows] : {std::pair<int64_t, int64_t>{0, 1}, {3, 70}, {149, 1}}) {
        const std::vector<float> part(all.begin() + first * kDim,
                                      all.begin() + (first + rows) * kDim);
        CHECK(run(backend, first, rows) == part);
      }
    });
  }
}

TEST_CASE("gpu experts: logits equal transformers' on its random models") {
  for (const char* name : test::kGoldens) {
    CAPTURE(std::string(name));
    const auto [folder, golden, ids] = test::golden(name);
    const Checkpoint checkpoint = Checkpoint::open(folder);
    const ModelConfig config = read_model_config(checkpoint);
    if (!config.experts) continue;
    const Json expected = golden.at("logits");
    test::on_every_backend([&](Backend& backend) {
      // A step of many rows, then one of a single row.
      const auto logits = test::run_model(checkpoint, config, backend, ids, {.chunk = 47});
      double worst = 0;
      for (size_t i = 0; i < expected.size(); ++i) {
        const auto position = static_cast<size_t>(std::stoul(expected.key(i)));
        for (size_t j = 0; j < expected.value(i).size(); ++j) {
          worst = std::max(
              worst, std::abs(double{logits[position][j]} - expected.value(i)[j].as_double()));
        }
      }
      CHECK(worst < 1e-4);
    });
  }
}

}  // namespace fp8kv
