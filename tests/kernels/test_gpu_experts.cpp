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
#include "core/numbers/host_view.h"
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
             const Routing& routing, const std::vector<float>& bias, DType terms) {
  const int64_t n = std::ssize(logits) / count;
  const Tensor in = put(backend, logits, DType::f32, {n, count});
  const Tensor choice = put(backend, bias, terms, {count});
  const Tensor factors = put(backend, random_values(5, count, terms), terms, {count});
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
    {.per_token = 3, .score = RouterScore::sqrt_softplus, .normalise = true, .scale = 1.5},
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
    size_t turn = 0;
    for (const Routing& routing : kRoutings) {
      const DType terms = test::kComputeTypes[turn++ % 3];
      const std::vector<float> bias = random_values(4, count, terms);
      const auto cpu = make_cpu_backend(1);
      const Chosen expected = route(*cpu, logits, count, routing, bias, terms);
      test::on_every_backend([&](Backend& backend) {
        const Chosen actual = route(backend, logits, count, routing, bias, terms);
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

namespace {

constexpr ClampedSwiglu kClamped{.alpha = 1.3f, .limit = 0.8f};

// Rows for five experts with random matrices. Most go to two of them, and none to the fourth.
struct ExpertCase {
  static constexpr int64_t kCount = 5, kChosen = 2;
  DType dtype = DType::f32;  // of the matrices; inputs have numbers of it
  int64_t rows = 150, dim = 37, hidden_dim = 70;
  Activation activation = Activation::silu;
  bool gated = true;
  bool weigh_input = false;
  bool clamped = false;     // biases and a clamped SwiGLU in place of the activation
  bool identities = false;  // some rows choose experts behind those with matrices
};

struct ExpertOutcome {
  std::vector<float> rows;     // [rows, dim]
  std::vector<uint64_t> amax;  // ExpertMatrices::down_amax
};

// Computes rows [first, first + rows) of the case. The CPU holds activations in f32.
ExpertOutcome run_experts(Backend& backend, const ExpertCase& c, DType activations, int64_t first,
                          int64_t rows) {
  constexpr int64_t kCount = ExpertCase::kCount, kChosen = ExpertCase::kChosen;
  const auto part = [&](const auto& all, int64_t width) {
    return std::vector(all.begin() + first * width, all.begin() + (first + rows) * width);
  };
  std::vector<Tensor> matrices;
  std::vector<uint64_t> addresses;
  for (uint64_t i = 0; i < 3 * kCount; ++i) {
    const Shape shape = i < 2 * kCount ? Shape{c.hidden_dim, c.dim} : Shape{c.dim, c.hidden_dim};
    const std::vector<float> values = random_values(10 + i, c.hidden_dim * c.dim, c.dtype);
    matrices.push_back(put(backend, values, c.dtype, shape));
    addresses.push_back(reinterpret_cast<uintptr_t>(matrices.back().view().data));
  }
  const Tensor table = backend.allocate(DType::u64, {3, kCount});
  backend.copy_in(table.view(), host_view(addresses, table.view().shape));
  std::vector<int32_t> ids;
  for (int32_t row = 0; row < c.rows; ++row) {
    ids.push_back(row % 7 == 0 ? 1 : 0);
    ids.push_back(c.identities && row % 3 == 0 ? 6 : row % 5 == 0 ? 4 : 2);
  }
  const std::vector<float> x = random_values(1, c.rows * c.dim, c.dtype);
  const std::vector<float> weights = random_values(2, c.rows * kChosen, DType::f32);
  const Tensor in = put(backend, part(x, c.dim), activations, {rows, c.dim});
  const Tensor chosen = put(backend, part(ids, kChosen), {rows, kChosen});
  const Tensor counted = put(backend, part(weights, kChosen), DType::f32, {rows, kChosen});
  const Tensor out = backend.allocate(activations, {rows, c.dim});
  const auto bias = [&](uint64_t seed, int64_t width) {
    return put(backend, random_values(seed, kCount * width, c.dtype), c.dtype, {kCount, width});
  };
  const Tensor gate = bias(40, c.hidden_dim), up = bias(41, c.hidden_dim), down = bias(42, c.dim);
  const Tensor amax = backend.allocate(DType::u64, {kCount});
  ExpertMatrices experts{table.view(), c.dtype, c.hidden_dim, c.activation, c.weigh_input};
  experts.gated = c.gated;
  experts.identities = c.identities ? 2 : 0;
  experts.down_amax = amax.view();
  if (c.clamped) {
    experts.biases = {gate.view(), up.view(), down.view()};
    experts.swiglu = kClamped;
  }
  backend.experts(in.view(), {chosen.view(), counted.view(), {}}, experts, out.view());
  return {get(backend, out.view()), contents<uint64_t>(backend, amax.view())};
}

double largest_of(const std::vector<float>& values) {
  double largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(double{value}));
  return largest;
}

// CHECKs all rows against the CPU's. Errors are those of hidden_dim sums of dim products; in 16
// bits also the rounding of hidden values and of the result.
void check_experts(const ExpertCase& c, const ExpertOutcome& found) {
  const auto cpu = make_cpu_backend(1);
  const ExpertOutcome expected = run_experts(*cpu, c, DType::f32, 0, c.rows);
  const double largest = largest_of(expected.rows), unit = test::unit_of(c.dtype);
  double worst = 0;
  for (size_t i = 0; i < expected.rows.size(); ++i) {
    worst = std::max(worst, std::abs(double{found.rows[i]} - expected.rows[i]));
  }
  CHECK(worst / largest < (c.dtype == DType::f32 ? 70 * unit : 4 * unit));
  for (size_t i = 0; i < expected.amax.size(); ++i) {
    const auto value = [&](const ExpertOutcome& outcome) {
      return double{float_from_bits(static_cast<uint32_t>(outcome.amax[i]))};
    };
    CHECK(std::abs(value(found) - value(expected)) <= value(expected) * 70 * unit);
  }
}

}  // namespace

TEST_CASE("gpu experts: give the CPU's sums, and a row the same bits whatever is beside it") {
  for (size_t turn = 0; turn < 15; ++turn) {
    ExpertCase c{.dtype = test::kComputeTypes[turn / 5]};
    c.weigh_input = turn % 5 % 2 == 1;
    c.clamped = turn % 5 / 2 == 1;
    c.gated = turn % 5 < 4;
    if (!c.gated) c.activation = Activation::relu_squared;
    CAPTURE(c.gated);
    CAPTURE(std::string(dtype_name(c.dtype)));
    CAPTURE(c.weigh_input);
    CAPTURE(c.clamped);
    test::on_every_backend([&](Backend& backend) {
      const ExpertOutcome all = run_experts(backend, c, c.dtype, 0, c.rows);
      check_experts(c, all);
      for (const auto& [first, rows] : {std::pair<int64_t, int64_t>{0, 1}, {3, 70}, {149, 1}}) {
        const std::vector<float> part(all.rows.begin() + first * c.dim,
                                      all.rows.begin() + (first + rows) * c.dim);
        CHECK(run_experts(backend, c, c.dtype, first, rows).rows == part);
      }
    });
  }
}

TEST_CASE("gpu experts: those without matrices give the row itself") {
  for (const DType dtype : test::kComputeTypes) {
    for (const bool weigh_input : {false, true}) {
      const ExpertCase c{.dtype = dtype, .weigh_input = weigh_input, .identities = true};
      CAPTURE(std::string(dtype_name(dtype)));
      CAPTURE(weigh_input);
      test::on_every_backend([&](Backend& backend) {
        const ExpertOutcome all = run_experts(backend, c, c.dtype, 0, c.rows);
        check_experts(c, all);
        const std::vector<float> part(all.rows.begin() + 3 * c.dim, all.rows.begin() + 4 * c.dim);
        CHECK(run_experts(backend, c, c.dtype, 3, 1).rows == part);
      });
    }
  }
}

TEST_CASE("gpu experts: every activation, with a gate and without, in every compute type") {
  for (const test::NamedActivation& named : test::activations()) {
    for (const DType dtype : test::kComputeTypes) {
      for (const bool gated : {true, false}) {
        CAPTURE(named.name);
        CAPTURE(std::string(dtype_name(dtype)));
        CAPTURE(gated);
        const ExpertCase c{.dtype = dtype,
                           .rows = 9,
                           .dim = 11,
                           .hidden_dim = 13,
                           .activation = named.activation,
                           .gated = gated};
        test::on_every_backend(
            [&](Backend& backend) { check_experts(c, run_experts(backend, c, dtype, 0, c.rows)); });
      }
    }
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
