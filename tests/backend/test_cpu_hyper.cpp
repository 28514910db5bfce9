// Shares of hyper-connections on the CPU, against plain loops in double precision.
#include <algorithm>
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "base/rng.h"
#include "support/backends/compare.h"
#include "support/backends/cpu.h"

namespace fp8kv {
namespace {

using test::kUnitF32;

// More rows than a job has.
constexpr int64_t kRows = 19, kDim = 23;

std::vector<float> random_floats(uint64_t seed, int64_t count) {
  Rng rng(seed);
  return test::random_floats(rng, count);
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

struct Scene {
  HyperConfig config;
  int64_t kinds = 3;  // of shares: read, write, mix
  std::vector<float> x, products, scale, base;

  explicit Scene(const HyperConfig& of, int64_t n_kinds) : config(of), kinds(n_kinds) {
    x = random_floats(1, kRows * config.count * kDim);
    products = random_floats(2, kRows * width());
    scale = random_floats(3, kinds);
    base = random_floats(4, width());
  }

  int64_t width() const {
    return kinds == 3 ? (2 + config.count) * config.count : kinds * config.count;
  }
};

// The shares of all rows: of what is read, then written, then mixed.
std::vector<float> shares_of(const Scene& scene, Backend& backend, DType numbers) {
  const int64_t count = scene.config.count;
  const Tensor read = backend.allocate(DType::f32, Shape{kRows, count});
  const Tensor write = backend.allocate(DType::f32, Shape{kRows, count});
  const Tensor mix = backend.allocate(DType::f32, Shape{kRows, count * count});
  HyperShares out{.read = read.view()};
  if (scene.kinds > 1) out.write = write.view();
  if (scene.kinds > 2) out.mix = mix.view();
  const test::Elements scale(scene.scale, numbers, Shape{scene.kinds});
  const test::Elements base(scene.base, numbers, Shape{scene.width()});
  backend.hyper_shares({test::tensor_of(backend, scene.x, {kRows, count * kDim}).view(),
                        test::tensor_of(backend, scene.products, {kRows, scene.width()}).view(),
                        scale.view(), base.view(), 0.25f},
                       scene.config, out);
  std::vector<float> all = test::floats_of(backend, out.read);
  for (const auto& more : {out.write, out.mix}) {
    if (!more) continue;
    const std::vector<float> of = test::floats_of(backend, *more);
    all.insert(all.end(), of.begin(), of.end());
  }
  return all;
}

// One row's matrix of shares: the published steps, on rows of plain vectors.
std::vector<double> balanced(std::vector<double> cells, const HyperConfig& config) {
  const auto count = static_cast<size_t>(config.count);
  const auto cell = [&](size_t i, size_t j) -> double& { return cells[i * count + j]; };
  const auto divide = [&](bool by_row) {
    for (size_t i = 0; i < count; ++i) {
      double sum = config.eps;
      for (size_t j = 0; j < count; ++j) sum += by_row ? cell(i, j) : cell(j, i);
      for (size_t j = 0; j < count; ++j) (by_row ? cell(i, j) : cell(j, i)) /= sum;
    }
  };
  for (size_t i = 0; i < count; ++i) {
    double sum = 0;
    for (size_t j = 0; j < count; ++j) sum += std::exp(cell(i, j));
    for (size_t j = 0; j < count; ++j) cell(i, j) = std::exp(cell(i, j)) / sum + config.eps;
  }
  divide(false);
  for (int64_t round = 1; round < config.rounds; ++round) {
    divide(true);
    divide(false);
  }
  return cells;
}

std::vector<double> expected_shares(const Scene& scene) {
  const auto count = static_cast<size_t>(scene.config.count);
  const auto width = static_cast<size_t>(scene.width());
  std::vector<double> read, write, mix;
  for (size_t row = 0; row < kRows; ++row) {
    double squares = 0;
    const size_t all = count * kDim;
    for (size_t i = 0; i < all; ++i) squares += std::pow(double{scene.x[row * all + i]}, 2);
    const double rms = std::sqrt(squares / static_cast<double>(all) + 0.25);
    const auto term = [&](size_t i, size_t kind) {
      return double{scene.products[row * width + i]} / rms * double{scene.scale[kind]} +
             double{scene.base[i]};
    };
    for (size_t s = 0; s < count; ++s) read.push_back(sigmoid(term(s, 0)) + scene.config.eps);
    for (size_t s = 0; scene.kinds > 1 && s < count; ++s) {
      write.push_back(scene.config.most_written * sigmoid(term(count + s, 1)) +
                      scene.config.write_eps);
    }
    if (scene.kinds < 3) continue;
    std::vector<double> cells;
    for (size_t i = 0; i < count * count; ++i) cells.push_back(term(2 * count + i, 2));
    const std::vector<double> made = balanced(cells, scene.config);
    for (size_t to = 0; to < count; ++to) {
      for (size_t from = 0; from < count; ++from) mix.push_back(made[from * count + to]);
    }
  }
  read.insert(read.end(), write.begin(), write.end());
  read.insert(read.end(), mix.begin(), mix.end());
  return read;
}

}  // namespace

TEST_CASE("hyper_shares: as plain loops in double precision, for every kind and number") {
  const auto backend = make_cpu_backend(2);
  for (const int64_t count : {2, 4, 8}) {
    for (const int64_t kinds : {1, 2, 3}) {
      for (const int64_t rounds : {1, 20}) {
        CAPTURE(count);
        CAPTURE(kinds);
        CAPTURE(rounds);
        const Scene scene(
            {.count = count, .eps = 0.01, .most_written = 1.5, .write_eps = 0.02, .rounds = rounds},
            kinds);
        const std::vector<double> expected = expected_shares(scene);
        std::vector<double> allowed;
        // An exponent of at most 3 is off by three roundings; each round divides twice.
        for (const double each : expected) {
          allowed.push_back(kUnitF32 * (16 + 4 * static_cast<double>(rounds * count)) * (each + 1));
        }
        test::expect_close(shares_of(scene, *backend, DType::f32), expected, allowed);
      }
    }
  }
}

TEST_CASE("hyper_shares: scale and base of 16 bits are read as they are") {
  const auto backend = make_cpu_backend(1);
  for (const DType dtype : {DType::f16, DType::bf16}) {
    Scene scene({.count = 4, .rounds = 3}, 3);
    const std::vector<float> narrow = shares_of(scene, *backend, dtype);
    for (std::vector<float>* each : {&scene.scale, &scene.base}) {
      const auto size = static_cast<int64_t>(each->size());
      const test::Elements rounded(*each, dtype, Shape{size});
      for (int64_t i = 0; i < size; ++i) {
        (*each)[static_cast<size_t>(i)] = static_cast<float>(rounded[i]);
      }
    }
    CHECK(shares_of(scene, *backend, DType::f32) == narrow);
  }
}

TEST_CASE("hyper_shares: rows and columns of what is mixed sum to 1") {
  const auto backend = make_cpu_backend(1);
  const Scene scene({.count = 4, .eps = 1e-6, .rounds = 20}, 3);
  const std::vector<float> all = shares_of(scene, *backend, DType::f32);
  const float* const mix = all.data() + 2 * kRows * 4;
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t i = 0; i < 4; ++i) {
      double across = 0, down = 0;
      for (int64_t j = 0; j < 4; ++j) {
        across += double{mix[row * 16 + i * 4 + j]};
        down += double{mix[row * 16 + j * 4 + i]};
      }
      CHECK(across == doctest::Approx(1).epsilon(1e-4));
      CHECK(down == doctest::Approx(1).epsilon(1e-4));
    }
  }
}

}  // namespace fp8kv
