#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/isa/cpu_isa.h"
#include "backend/open/open.h"
#include "backend/open/plugin.h"
#include "base/machine/cpu_topology.h"
#include "support/backends/activations.h"
#include "support/backends/compare.h"
#include "support/backends/cpu.h"
#include "support/expect_error.h"

namespace fp8kv {

TEST_CASE("cpu_isa: a row for each set in rising order, and the best one is here") {
  std::set<std::string_view> names;
  for (size_t i = 0; i < cpu_isas().size(); ++i) {
    const CpuIsaRow& row = cpu_isas()[i];
    CHECK(static_cast<size_t>(row.isa) == i);
    CHECK(names.insert(row.name).second);
    CHECK_FALSE(row.needs.empty());
    CHECK((!row.is_here() || is_slow_here(row) || row.isa <= best_cpu_isa()));
    CHECK((!row.is_here() || row.kernels != nullptr));
  }
  CHECK(has_cpu_isa(CpuIsa::portable));
  CHECK(has_cpu_isa(best_cpu_isa()));
#if defined(__aarch64__)
  CHECK(has_cpu_isa(CpuIsa::neon));
#endif
}

// The set decides the bits of products, so no clock may choose it.
TEST_CASE("cpu_isa: only AVX-512 BF16 is ever slow, and the maker of the processor says so") {
  for (const CpuIsaRow& row : cpu_isas()) {
    bool expected = false;
#if defined(__x86_64__)
    expected = row.isa == CpuIsa::avx512_bf16 && __builtin_cpu_is("intel") != 0;
#endif
    CHECK(is_slow_here(row) == expected);
  }
}

TEST_CASE("cpu backend: says what it is") {
  CHECK(make_cpu_backend(2, CpuIsa::portable)->describe() == "cpu: portable, 2 threads");
  CHECK(make_cpu_backend(1, CpuIsa::portable)->describe() == "cpu: portable, 1 thread");
}

TEST_CASE("open_backend: gives the CPU for auto and cpu, says why, and lists what it knows") {
  const OpenedBackend best = open_backend("auto", 1), cpu = open_backend("cpu", 1);
  CHECK(best.backend->describe() == cpu.backend->describe());
  CHECK(best.why == " (no GPU: no module for one is installed)");
  CHECK(cpu.why == "");
  const int cores = usable_cores();
  CHECK(open_backend("cpu", cores).why == "");
  CHECK(open_backend("cpu", cores + 1).why == cat(" (more than the ", cores,
                                                  cores == 1 ? " core" : " cores",
                                                  " there are: they take turns)"));
  CHECK(device_names() == std::vector<std::string>{"auto", "cpu", "cuda", "hip"});
  CHECK(test::error_of([] { open_backend("cpx", 1); }, ErrorKind::usage) ==
        "unknown device 'cpx' (did you mean 'cpu'?)");
}

TEST_CASE("open_backend: says where it looked for a module that is not there") {
  const std::vector<std::filesystem::path> folders = plugin_folders();
  REQUIRE(folders.size() == 2);
  CHECK(test::error_of([] { open_backend("cuda", 1); }, ErrorKind::device) ==
        cat("fp8kv_cuda.so is not installed in ", quote(folders[0].string()), " or ",
            quote(folders[1].string())));
}

TEST_CASE("cpu backend: allocates zeroed memory on cache lines, large and small") {
  const auto backend = make_cpu_backend(1);
  for (const int64_t count : {0, 1, 100, 3000000}) {
    const Tensor tensor = backend->allocate(DType::f32, Shape{count});
    CHECK(reinterpret_cast<uintptr_t>(tensor.view().data) % 64 == 0);
    const std::vector<float> values = test::floats_of(*backend, tensor.view());
    CHECK(values == std::vector<float>(static_cast<size_t>(count)));
  }
}

TEST_CASE("cpu backend: names the size of memory that it cannot have") {
  const auto backend = make_cpu_backend(1);
  CHECK(test::error_of([&] { backend->allocate(DType::u8, Shape{int64_t{1} << 60}); },
                       ErrorKind::resource) == "cannot allocate 1.00 EiB of memory");
}

TEST_CASE("upload: borrows the memory and keeps its owner alive") {
  const auto backend = make_cpu_backend(1);
  auto owner = std::make_shared<std::vector<float>>(std::vector<float>{1, 2, 3});
  const auto* data = reinterpret_cast<const std::byte*>(owner->data());
  const std::weak_ptr<std::vector<float>> watch = owner;
  {
    const Tensor tensor = backend->upload({data, DType::f32, Shape{3}}, std::move(owner));
    CHECK(tensor.view().data == data);
    CHECK(!watch.expired());
  }
  CHECK(watch.expired());
}

TEST_CASE("embed: gathers rows of any type exactly") {
  for (const CpuIsa isa : test::available_isas()) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      CAPTURE(std::string(cpu_isa_name(isa)));
      CAPTURE(std::string(dtype_name(dtype)));
      const auto backend = make_cpu_backend(2, isa);
      Rng rng(31);
      const test::Elements table(test::random_floats(rng, 7 * 37), dtype, Shape{7, 37}, 1);
      const std::vector<int32_t> chosen = {6, 0, 3, 3};
      const Tensor ids = test::tensor_of(*backend, chosen, Shape{4});
      const Tensor out = backend->allocate(DType::f32, Shape{4, 37});
      backend->embed(table.view(), ids.view(), out.view());
      const std::vector<float> values = test::floats_of(*backend, out.view());
      bool same = true;
      for (int64_t i = 0; i < 4 * 37; ++i) {
        same = same && double{values[i]} == table[chosen[i / 37] * 37 + i % 37];
      }
      CHECK(same);
    }
  }
}

TEST_CASE("norm: equals the definition in double, also in place") {
  constexpr double kEps = double{1e-5f};
  for (const CpuIsa isa : test::available_isas()) {
    for (const NormKind kind : {NormKind::rms, NormKind::layer}) {
      for (const int64_t dim : {1, 7, 64, 1000}) {
        CAPTURE(std::string(cpu_isa_name(isa)));
        CAPTURE((kind == NormKind::rms));
        CAPTURE(dim);
        const auto backend = make_cpu_backend(3, isa);
        Rng rng(32);
        const std::vector<float> x = test::random_floats(rng, 45 * dim);
        const bool layer = kind == NormKind::layer;
        const int64_t kinds = dim == 7 ? 3 : 1;  // kinds of rows, each with weights of its own
        const test::Elements weight(test::random_floats(rng, kinds * dim), DType::bf16,
                                    Shape{kinds, dim}, 1);
        const test::Elements bias(test::random_floats(rng, dim), DType::f16, Shape{dim}, 1);
        const float offset = dim == 64 ? 1.0f : 0.0f;
        std::vector<double> expected, allowed;
        for (int64_t row = 0; row < 45; ++row) {
          const float* from = x.data() + row * dim;
          double mean = 0, squares = 0;
          if (layer) mean = std::accumulate(from, from + dim, 0.0) / static_cast<double>(dim);
          for (int64_t i = 0; i < dim; ++i) squares += std::pow(from[i] - mean, 2);
          const double factor = 1 / std::sqrt(squares / static_cast<double>(dim) + kEps);
          for (int64_t i = 0; i < dim; ++i) {
            const double by = weight[row % kinds * dim + i] + double{offset};
            const double weighed = (from[i] - mean) * factor * by;
            expected.push_back(weighed + (layer ? bias[i] : 0));
            // The factor, the weight and two products round once each. For `layer`, so do the mean
            // (within 2 here), the difference and the sum.
            const double of_layer = 2 * factor * std::abs(by) + std::abs(expected.back());
            allowed.push_back(test::kUnitF32 *
                              (4.01 * std::abs(weighed) + (layer ? 2 * of_layer : 0)));
          }
        }
        Norm norm{.kind = kind, .eps = 1e-5f, .weight_offset = offset, .weight = weight.view()};
        if (layer) norm.bias = bias.view();
        const Tensor in = test::tensor_of(*backend, x, Shape{45, dim});
        const Tensor out = backend->allocate(DType::f32, Shape{45, dim});
        backend->norm(in.view(), norm, out.view());
        test::expect_close(test::floats_of(*backend, out.view()), expected, allowed);
        CHECK(test::floats_of(*backend, in.view()) == x);
        backend->norm(in.view(), norm, in.view());
        CHECK(test::floats_of(*backend, in.view()) == test::floats_of(*backend, out.view()));
      }
    }
  }
}

TEST_CASE(
    "activate: equals every activation in double over the whole range, with a gate and without") {
  for (const CpuIsa isa : test::available_isas()) {
    CAPTURE(std::string(cpu_isa_name(isa)));
    const auto backend = make_cpu_backend(3, isa);
    for (const test::NamedActivation& named : test::activations()) {
      CAPTURE(named.name);
      Rng rng(33);
      constexpr int64_t kRows = 33, kDim = 1111;
      std::vector<float> x = test::random_floats(rng, kRows * kDim);
      for (float& value : x) value *= 80;
      for (int i = 0; i < 500; ++i) x[i] /= 60;  // where activation(x) is neither x nor 0
      x[0] = 0;
      x[1] = 1e-30f;
      x[2] = -85;
      x[3] = 1e18f;
      const std::vector<float> up = test::random_floats(rng, kRows * kDim);
      std::vector<double> plain, gated, plain_allowed, gated_allowed;
      for (size_t i = 0; i < x.size(); ++i) {
        plain.push_back(named.of(double{x[i]}));
        gated.push_back(plain.back() * up[i]);
        plain_allowed.push_back(named.error(double{x[i]}, test::kUnitF32));
        gated_allowed.push_back(plain_allowed.back() * std::abs(up[i]) +
                                test::kUnitF32 * std::abs(gated.back()));
      }
      const Tensor values = test::tensor_of(*backend, x, Shape{kRows, kDim});
      const Tensor other = test::tensor_of(*backend, up, Shape{kRows, kDim});
      backend->activate(named.activation, values.view(), other.view());
      test::expect_close(test::floats_of(*backend, values.view()), gated, gated_allowed);
      const Tensor alone = test::tensor_of(*backend, x, Shape{kRows, kDim});
      backend->activate(named.activation, alone.view(), std::nullopt);
      test::expect_close(test::floats_of(*backend, alone.view()), plain, plain_allowed);
    }
  }
}

TEST_CASE("add and scale: equal double precision") {
  for (const CpuIsa isa : test::available_isas()) {
    CAPTURE(std::string(cpu_isa_name(isa)));
    const auto backend = make_cpu_backend(3, isa);
    Rng rng(34);
    const Shape shape{33, 111};
    const std::vector<float> x = test::random_floats(rng, shape.elements());
    const std::vector<float> y = test::random_floats(rng, shape.elements());
    std::vector<double> sums, scaled, capped, sum_allowed, scaled_allowed, capped_allowed;
    for (size_t i = 0; i < x.size(); ++i) {
      sums.push_back(x[i] + double{0.3f} * y[i]);
      scaled.push_back(7.0 * x[i]);
      capped.push_back(2.0 * std::tanh(7.0 * x[i] / 2.0));
      // The sum has a product and an addition, the scaling a product. For tanh, two roundings of
      // its argument change it by at most that part of it, and tanh itself is off by 4 units in the
      // last place, two roundings each. A per cent covers higher orders.
      sum_allowed.push_back(1.01 * test::kUnitF32 *
                            (std::abs(double{0.3f} * y[i]) + std::abs(sums.back())));
      scaled_allowed.push_back(test::kUnitF32 * std::abs(scaled.back()));
      capped_allowed.push_back(1.01 * 10 * test::kUnitF32 * std::abs(capped.back()));
    }
    const Tensor sum = test::tensor_of(*backend, x, shape);
    backend->add(sum.view(), test::tensor_of(*backend, y, shape).view(), 0.3f);
    test::expect_close(test::floats_of(*backend, sum.view()), sums, sum_allowed);
    const Tensor product = test::tensor_of(*backend, x, shape);
    backend->scale(product.view(), 7.0f, 0.0f);
    test::expect_close(test::floats_of(*backend, product.view()), scaled, scaled_allowed);
    const Tensor cap = test::tensor_of(*backend, x, shape);
    backend->scale(cap.view(), 7.0f, 2.0f);
    test::expect_close(test::floats_of(*backend, cap.view()), capped, capped_allowed);
  }
}

}  // namespace fp8kv
