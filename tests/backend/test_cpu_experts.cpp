// Experts on the CPU, against plain loops in double precision.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/rng.h"
#include "core/numbers/host_view.h"
#include "support/backends/cpu.h"
#include "support/reference/clamped_swiglu.h"

namespace fp8kv {
namespace {

using Ids = std::vector<int32_t>;

// Experts with random weights, and the rows sent to them.
struct Scene {
  Scene(int64_t n_rows, int64_t count, int64_t dim_in, int64_t hidden_in, int64_t per_token,
        DType dtype_in, uint64_t seed = 3)
      : n(n_rows), dim(dim_in), hidden_dim(hidden_in), k(per_token), dtype(dtype_in) {
    Rng rng(seed);
    for (int64_t i = 0; i < 3 * count; ++i) {
      const Shape shape = i < 2 * count ? Shape{hidden_dim, dim} : Shape{dim, hidden_dim};
      matrices.emplace_back(test::random_floats(rng, dim * hidden_dim), dtype, shape);
      addresses.push_back(reinterpret_cast<uintptr_t>(matrices.back().view().data));
    }
    x = test::random_floats(rng, n * dim);
    for (int64_t row = 0; row < n; ++row) {
      Ids chosen;
      while (static_cast<int64_t>(chosen.size()) < k) {
        const auto id = static_cast<int32_t>(rng.next() % static_cast<uint64_t>(count));
        if (std::find(chosen.begin(), chosen.end(), id) == chosen.end()) chosen.push_back(id);
      }
      std::sort(chosen.begin(), chosen.end());
      ids.insert(ids.end(), chosen.begin(), chosen.end());
    }
    weights = test::random_floats(rng, n * k);
  }

  // Takes the matrices from the last `number` experts. REQUIRES that the scene has not run yet.
  void make_identities(int64_t number) {
    const int64_t all = std::ssize(addresses) / 3;
    identities = number;
    for (int64_t matrix = 2; matrix >= 0; --matrix) {
      const int64_t end = (matrix + 1) * all;
      addresses.erase(addresses.begin() + end - number, addresses.begin() + end);
      matrices.erase(matrices.begin() + end - number, matrices.begin() + end);
    }
  }

  // Runs rows [first, first + rows).
  std::vector<float> run(Backend& backend, int64_t first, int64_t rows,
                         const std::optional<TensorView>& down_amax = {}) const {
    const auto part = [&](const auto& all, int64_t width) {
      return std::vector(all.begin() + first * width, all.begin() + (first + rows) * width);
    };
    const Tensor in = test::tensor_of(backend, part(x, dim), {rows, dim});
    const Tensor chosen = test::tensor_of(backend, part(ids, k), {rows, k});
    const Tensor counted = test::tensor_of(backend, part(weights, k), {rows, k});
    const Tensor table = backend.allocate(DType::u64, Shape{3, std::ssize(addresses) / 3});
    backend.copy_in(table.view(), host_view(addresses, table.view().shape));
    const Tensor out = backend.allocate(DType::f32, Shape{rows, dim});
    backend.experts(in.view(), {chosen.view(), counted.view(), {}},
                    {table.view(), dtype, hidden_dim, activation, weigh_input, codes,
                     biases ? std::optional(biases->views()) : std::nullopt, swiglu, gated,
                     down_amax, identities},
                    out.view());
    return test::floats_of(backend, out.view());
  }

  // Element h of the row that `down` of expert `id` multiplies.
  double hidden(int64_t row, int64_t id, int64_t h) const {
    const int64_t count = std::ssize(addresses) / 3;
    const auto product = [&](int64_t matrix) {
      double dot = 0;
      for (int64_t i = 0; i < dim; ++i) {
        double value = x[static_cast<size_t>(row * dim + i)];
        if (dtype == DType::bf16) {
          value = bf16_to_float(bf16_from_float(static_cast<float>(value)));
        }
        dot += value * matrices[static_cast<size_t>(matrix * count + id)][h * dim + i];
      }
      return dot;
    };
    double gate = product(0), up = product(1);
    if (biases) {
      gate += double{biases->gate[id * hidden_dim + h]};
      up += double{biases->up[id * hidden_dim + h]};
    }
    double hidden = gate / (1 + std::exp(-gate)) * up;
    if (!gated) hidden = std::max(up, 0.0) * std::max(up, 0.0);
    if (swiglu) hidden = test::exact_clamped_swiglu(*swiglu, gate, up);
    if (dtype == DType::bf16) {
      hidden = bf16_to_float(bf16_from_float(static_cast<float>(hidden)));
    }
    return hidden;
  }

  // The expected values of every ninth output column.   [n, columns]
  std::vector<double> expected() const {
    const int64_t count = std::ssize(addresses) / 3;
    std::vector<double> all;
    for (int64_t row = 0; row < n; ++row) {
      std::vector<double> sums(static_cast<size_t>(dim));
      for (int64_t j = 0; j < k; ++j) {
        const int64_t id = ids[static_cast<size_t>(row * k + j)];
        for (int64_t i = 0; id >= count && i < dim; i += kColumnStep) {
          sums[static_cast<size_t>(i)] += double{weights[static_cast<size_t>(row * k + j)]} *
                                          x[static_cast<size_t>(row * dim + i)];
        }
        if (id >= count) continue;
        std::vector<double> inner;
        for (int64_t h = 0; h < hidden_dim; ++h) inner.push_back(hidden(row, id, h));
        for (int64_t column = 0; column < dim; column += kColumnStep) {
          double made = biases ? double{biases->down[id * dim + column]} : 0;
          for (int64_t h = 0; h < hidden_dim; ++h) {
            made += inner[static_cast<size_t>(h)] *
                    matrices[static_cast<size_t>(2 * count + id)][column * hidden_dim + h];
          }
          sums[static_cast<size_t>(column)] += weights[static_cast<size_t>(row * k + j)] * made;
        }
      }
      for (int64_t column = 0; column < dim; column += kColumnStep) {
        all.push_back(sums[static_cast<size_t>(column)]);
      }
    }
    return all;
  }

  std::vector<double> down_amax() const {
    std::vector<double> amax(addresses.size() / 3, 0.0);
    for (int64_t row = 0; row < n; ++row) {
      for (int64_t j = 0; j < k; ++j) {
        const int64_t id = ids[static_cast<size_t>(row * k + j)];
        for (int64_t h = 0; h < hidden_dim; ++h) {
          double& most = amax[static_cast<size_t>(id)];
          most = std::max(most, std::abs(hidden(row, id, h)));
        }
      }
    }
    return amax;
  }

  static constexpr int64_t kColumnStep = 9;
  int64_t n, dim, hidden_dim, k;
  int64_t identities = 0;
  DType dtype;
  Activation activation = Activation::silu;
  bool weigh_input = false;
  bool gated = true;
  // Removes the gates. REQUIRES that the scene has not run yet.
  void leave_out_gates() {
    gated = false;
    activation = Activation::relu_squared;
    std::fill_n(addresses.begin(), addresses.size() / 3, 0);
  }
  std::vector<test::Elements> matrices;
  std::vector<uint64_t> addresses;
  std::vector<std::optional<QuantisedMatrix>> codes;
  struct Biases {
    test::Elements gate, up, down;
    ExpertBiases views() const { return {gate.view(), up.view(), down.view()}; }
  };
  void add_biases() {
    Rng rng(17);
    const int64_t count = std::ssize(addresses) / 3;
    const auto random = [&](int64_t width) {
      return test::Elements(test::random_floats(rng, count * width), dtype, Shape{count, width});
    };
    biases = Biases{random(hidden_dim), random(hidden_dim), random(dim)};
  }

  std::optional<Biases> biases;
  std::optional<ClampedSwiglu> swiglu;
  std::vector<float> x, weights;
  Ids ids;
};

// All pairs of an instruction set of this machine and one of these numbers of rows.
std::vector<std::pair<CpuIsa, int64_t>> every(std::initializer_list<int64_t> rows) {
  std::vector<std::pair<CpuIsa, int64_t>> all;
  for (const CpuIsa isa : test::available_isas()) {
    for (const int64_t n : rows) all.emplace_back(isa, n);
  }
  return all;
}

}  // namespace

TEST_CASE("experts: codes give the bits of decoded weights, also of some matrices alone") {
  constexpr int64_t kDim = 128, kHidden = 64, kCount = 4;
  Rng rng(11);
  for (const auto& [isa, n] : every({1, 6, 90})) {
    CAPTURE(cpu_isa_name(isa));
    CAPTURE(n);
    const auto backend = make_cpu_backend(3, isa);
    Scene decoded(n, kCount, kDim, kHidden, 2, DType::bf16);
    Scene coded(n, kCount, kDim, kHidden, 2, DType::bf16);
    std::vector<Tensor> storage;
    std::vector<std::vector<uint8_t>> bytes(3 * kCount);
    std::vector<std::vector<float>> scales(3 * kCount);
    coded.codes.resize(3 * kCount);
    for (size_t i = 0; i < 3 * kCount; ++i) {
      QuantisedMatrix matrix;
      matrix.rows = i < 2 * kCount ? kHidden : kDim;
      matrix.columns = i < 2 * kCount ? kDim : kHidden;
      matrix.block_columns = matrix.columns;
      matrix.row_step = 1;
      for (int64_t j = 0; j < kDim * kHidden; ++j) {
        bytes[i].push_back(static_cast<uint8_t>(rng.next() & 0xBFu));  // no NaN
      }
      scales[i] = test::random_floats(rng, matrix.rows);
      matrix.codes = bytes[i].data();
      matrix.scales = scales[i].data();
      storage.push_back(backend->allocate(DType::bf16, Shape{matrix.rows, matrix.columns}));
      backend->decode_weights(matrix, storage.back().view());
      decoded.addresses[i] = reinterpret_cast<uintptr_t>(storage.back().view().data);
      const bool stays_decoded = i % 5 == 1;
      coded.addresses[i] = stays_decoded ? decoded.addresses[i] : 0;
      if (!stays_decoded) coded.codes[i] = matrix;
    }
    const auto other = make_cpu_backend(3, test::isa_like_codes(isa, DType::bf16, n));
    CHECK(coded.run(*backend, 0, n) == decoded.run(*other, 0, n));
  }
}

TEST_CASE("experts: weights on the way in have the bits of rows that were multiplied before") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const int64_t n : {1, 3, 150}) {
      Scene before(n, 4, 33, 70, 1, dtype), within(n, 4, 33, 70, 1, dtype);
      within.weigh_input = true;
      for (size_t i = 0; i < before.x.size(); ++i) before.x[i] *= before.weights[i / 33];
      before.weights.assign(before.weights.size(), 1.0f);
      const auto backend = make_cpu_backend(3);
      CHECK(within.run(*backend, 0, n) == before.run(*backend, 0, n));
    }
  }
}

namespace {

// Three sums of 71 products that are sums of 37, with values near 10. In bf16, a hidden value may
// round to the other neighbour, which is 2^-8 of some of these away. On a matrix unit, f16 loses
// parted_error of a sum's magnitudes (some 50 here), in each of two consecutive products.
double tolerance_of(CpuIsa isa, DType dtype) {
  const double parted = 100 * test::parted_error(isa, dtype);
  return dtype == DType::bf16 ? 0.6 : 2e-4 + parted;
}

void check_everywhere(const Scene& scene) {
  const std::vector<double> expected = scene.expected();
  for (const CpuIsa isa : test::available_isas()) {
    CAPTURE(std::string(cpu_isa_name(isa)));
    const std::vector<float> out = scene.run(*make_cpu_backend(2, isa), 0, scene.n);
    const double tolerance = tolerance_of(isa, scene.dtype);
    size_t next = 0;
    for (int64_t row = 0; row < scene.n; ++row) {
      for (int64_t column = 0; column < scene.dim; column += Scene::kColumnStep) {
        const double found = out[static_cast<size_t>(row * scene.dim + column)];
        CHECK(std::abs(found - expected[next++]) < tolerance);
      }
    }
  }
}

}  // namespace

TEST_CASE("experts: equal plain loops in double precision") {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    CAPTURE(std::string(dtype_name(dtype)));
    for (const int64_t rows : {1, 5, 40}) check_everywhere(Scene(rows, 5, 37, 71, 3, dtype));
  }
}

TEST_CASE("experts: with biases and clamped they equal plain loops in double precision") {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const bool clamped : {false, true}) {
      CAPTURE(std::string(dtype_name(dtype)));
      CAPTURE(clamped);
      for (const int64_t rows : {1, 5, 40}) {
        Scene scene(rows, 5, 37, 71, 3, dtype);
        scene.add_biases();
        if (clamped) scene.swiglu = ClampedSwiglu{.alpha = 1.3f, .limit = 0.8f};
        check_everywhere(scene);
      }
    }
  }
}

TEST_CASE("experts: clamped in other forms they equal plain loops in double precision") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const SwigluForm form : {SwigluForm::silu, SwigluForm::after, SwigluForm::situ}) {
      for (const int64_t rows : {1, 40}) {
        Scene scene(rows, 5, 37, 71, 3, dtype);
        scene.swiglu = ClampedSwiglu{.limit = 0.4f, .form = form};
        check_everywhere(scene);
      }
    }
  }
}

TEST_CASE("experts: without gates they equal plain loops in double precision") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const int64_t rows : {1, 40}) {
      Scene scene(rows, 5, 37, 71, 3, dtype);
      scene.leave_out_gates();
      check_everywhere(scene);
    }
  }
}

TEST_CASE("experts: those without matrices give the row itself") {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const int64_t rows : {1, 5, 40}) {
      CAPTURE(rows);
      Scene scene(rows, 7, 37, 71, 3, dtype);
      scene.make_identities(4);
      check_everywhere(scene);
    }
  }
}

TEST_CASE("experts: a row has the same bits whatever is beside it and however many threads") {
  for (const CpuIsa isa : test::available_isas()) {
    CAPTURE(std::string(cpu_isa_name(isa)));
    for (const DType dtype : {DType::f32, DType::bf16}) {
      // Enough rows for several waves, and for experts that two waves share.
      Scene scene(1700, 4, 40, 35, 3, dtype);
      scene.make_identities(1);
      scene.add_biases();
      scene.swiglu.emplace();
      const auto one = make_cpu_backend(1, isa);
      const auto three = make_cpu_backend(3, isa);
      for (const int64_t size : {64, 512}) {
        one->compute_as({size, size});
        three->compute_as({size, size});
        const std::vector<float> all = scene.run(*one, 0, scene.n);
        CHECK(scene.run(*three, 0, scene.n) == all);
        for (const auto& [first, rows] : {std::pair{0, 1}, {7, 30}, {700, 1000}}) {
          const std::vector<float> part(all.begin() + first * 40,
                                        all.begin() + (first + rows) * 40);
          CHECK(scene.run(*three, first, rows) == part);
        }
      }
    }
  }
}

TEST_CASE("experts: the largest magnitudes of what down multiplies are those of plain loops") {
  for (const int64_t rows : {2, 40}) {  // by dot products and by tiles
    const Scene scene(rows, 5, 24, 70, 2, DType::f32);
    const auto backend = make_cpu_backend(3);
    const Tensor amax = backend->allocate(DType::u64, Shape{5});
    scene.run(*backend, 0, rows, amax.view());
    const std::vector<double> expected = scene.down_amax();
    for (size_t expert = 0; expert < 5; ++expert) {
      const auto bits = static_cast<uint32_t>(amax.view().as<const uint64_t>()[expert]);
      CHECK(float_from_bits(bits) == doctest::Approx(expected[expert]).epsilon(1e-5));
    }
  }
}

}  // namespace fp8kv
