// Shares of hyper-connections on the CPU, against plain loops in double precision.
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
constexpr int64_t kHyperRows = 19, kHyperDim = 23;

std::vector<float> hyper_floats(uint64_t seed, int64_t count) {
  Rng rng(seed);
  return test::random_floats(rng, count);
}

double exact_sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

struct HyperScene {
  HyperConfig config;
  int64_t kinds = 2;  // of shares: of what is read, of what is written, of what is mixed
  std::vector<float> x, products, scale, base;

  explicit HyperScene(const HyperConfig& of, int64_t n_kinds) : config(of), kinds(n_kinds) {
    x = hyper_floats(1, kHyperRows * config.count * kHyperDim);
    products = hyper_floats(2, kHyperRows * width());
    scale = hyper_floats(3, kinds);
    base = hyper_floats(4, width());
  }

  int64_t width() const { return kinds == 1 ? config.count : config.width(); }
};

// The shares of all rows: of what is read, then written.
std::vector<float> hyper_shares_of(const HyperScene& scene, Backend& backend, DType numbers) {
  const int64_t count = scene.config.count;
  const Tensor read = backend.allocate(DType::f32, Shape{kHyperRows, count});
  const Tensor write = backend.allocate(DType::f32, Shape{kHyperRows, count});
  HyperShares out{.read = read.view()};
  if (scene.kinds > 1) out.write = write.view();
  const Tensor mix = backend.allocate(DType::f32, Shape{kHyperRows, count * count});
  if (scene.kinds > 2) out.mix = mix.view();
  const test::Elements scale(scene.scale, numbers, Shape{scene.kinds});
  const test::Elements base(scene.base, numbers, Shape{scene.width()});
  backend.hyper_shares(
      {test::tensor_of(backend, scene.x, {kHyperRows, count * kHyperDim}).view(),
       test::tensor_of(backend, scene.products, {kHyperRows, scene.width()}).view(), scale.view(),
       base.view(), 0.25f},
      scene.config, out);
  std::vector<float> all = test::floats_of(backend, out.read);
  if (!out.write) return all;
  const std::vector<float> written = test::floats_of(backend, *out.write);
  all.insert(all.end(), written.begin(), written.end());
  if (!out.mix) return all;
  const std::vector<float> mixed = test::floats_of(backend, *out.mix);
  all.insert(all.end(), mixed.begin(), mixed.end());
  return all;
}

// The shares that mix streams, of terms [from, to]: in the order of mix_streams.
std::vector<double> expected_mix(std::vector<double> terms, const HyperConfig& config) {
  const auto count = static_cast<size_t>(config.count);
  const auto divide = [&](size_t step, size_t apart) {
    for (size_t line = 0; line < count; ++line) {
      double sum = config.eps;
      for (size_t i = 0; i < count; ++i) sum += terms[line * apart + i * step];
      for (size_t i = 0; i < count; ++i) terms[line * apart + i * step] /= sum;
    }
  };
  for (size_t from = 0; from < count; ++from) {
    double sum = 0;
    for (size_t to = 0; to < count; ++to) sum += std::exp(terms[from * count + to]);
    for (size_t to = 0; to < count; ++to) {
      double& term = terms[from * count + to];
      term = std::exp(term) / sum + config.eps;
    }
  }
  divide(count, 1);
  for (int64_t round = 1; round < config.rounds; ++round) {
    divide(1, count);
    divide(count, 1);
  }
  std::vector<double> mix;
  for (size_t to = 0; to < count; ++to) {
    for (size_t from = 0; from < count; ++from) mix.push_back(terms[from * count + to]);
  }
  return mix;
}

std::vector<double> expected_hyper_shares(const HyperScene& scene) {
  const auto count = static_cast<size_t>(scene.config.count);
  const auto width = static_cast<size_t>(scene.width());
  std::vector<double> read, write, mix;
  const double written = scene.config.eps_written ? scene.config.eps : 0;
  for (size_t row = 0; row < kHyperRows; ++row) {
    double squares = 0;
    const size_t all = count * kHyperDim;
    for (size_t i = 0; i < all; ++i) squares += std::pow(double{scene.x[row * all + i]}, 2);
    const double rms = std::sqrt(squares / static_cast<double>(all) + 0.25);
    const auto term = [&](size_t i, size_t kind) {
      return double{scene.products[row * width + i]} / rms * double{scene.scale[kind]} +
             double{scene.base[i]};
    };
    for (size_t s = 0; s < count; ++s) read.push_back(exact_sigmoid(term(s, 0)) + scene.config.eps);
    for (size_t s = 0; scene.kinds > 1 && s < count; ++s) {
      write.push_back(scene.config.most_written * exact_sigmoid(term(count + s, 1)) + written);
    }
    if (scene.kinds < 3) continue;
    std::vector<double> terms;
    for (size_t i = 0; i < count * count; ++i) terms.push_back(term(2 * count + i, 2));
    const std::vector<double> of_row = expected_mix(terms, scene.config);
    mix.insert(mix.end(), of_row.begin(), of_row.end());
  }
  read.insert(read.end(), write.begin(), write.end());
  read.insert(read.end(), mix.begin(), mix.end());
  return read;
}

}  // namespace

TEST_CASE("hyper_shares: as plain loops in double precision, for every number of streams") {
  const auto backend = make_cpu_backend(2);
  for (const int64_t count : {2, 4, 8}) {
    for (const int64_t kinds : {1, 2, 3}) {
      CAPTURE(count);
      CAPTURE(kinds);
      HyperConfig config{.count = count, .eps = 0.01, .most_written = 1.5};
      if (kinds == 3) config.rounds = 4;
      config.eps_written = kinds < 3;
      const HyperScene scene(config, kinds);
      const std::vector<double> expected = expected_hyper_shares(scene);
      std::vector<double> allowed;
      // An exponent of at most 3 is off by five roundings, and so is what comes of it.
      for (const double each : expected) allowed.push_back(16 * kUnitF32 * (each + 1));
      test::expect_close(hyper_shares_of(scene, *backend, DType::f32), expected, allowed);
    }
  }
}

TEST_CASE("hyper_shares: scale and base of 16 bits are read as they are") {
  const auto backend = make_cpu_backend(1);
  for (const DType dtype : {DType::f16, DType::bf16}) {
    HyperScene scene({.count = 4}, 2);
    const std::vector<float> narrow = hyper_shares_of(scene, *backend, dtype);
    for (std::vector<float>* each : {&scene.scale, &scene.base}) {
      const auto size = static_cast<int64_t>(each->size());
      const test::Elements rounded(*each, dtype, Shape{size});
      for (int64_t i = 0; i < size; ++i) {
        (*each)[static_cast<size_t>(i)] = static_cast<float>(rounded[i]);
      }
    }
    CHECK(hyper_shares_of(scene, *backend, DType::f32) == narrow);
  }
}

}  // namespace fp8kv
