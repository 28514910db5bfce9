// rope_append on every GPU backend that runs here has the CPU backend's bits.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "core/numbers/histogram.h"
#include "support/backends/gpu_backends.h"
#include "support/backends/linear_case.h"

namespace fp8kv {
namespace {

using test::bytes_of;
using test::get;
using test::on_every_backend;
using test::on_every_backend_and_type;
using test::put;
using test::random_values;

struct RopeCase {
  DType dtype;
  DType cache;
  int64_t n;
  int64_t head_dim;
  int64_t n_heads;
  int64_t n_kv_heads;
  int64_t page_size;
  DType activations;  // f32 on the CPU
  int64_t rotary_dim;
  RopePairs pairs = RopePairs::halves;
  int64_t own_v_dim = 0;  // of V; 0: head_dim
  bool observed = true;   // magnitudes are counted

  int64_t v_dim() const { return own_v_dim > 0 ? own_v_dim : head_dim; }
};

struct RopeOutcome {
  std::vector<float> q, k;
  std::vector<std::byte> k_cache, v_cache;
  std::vector<uint64_t> magnitudes;
};

RopeOutcome run_rope(Backend& backend, const RopeCase& c) {
  constexpr int64_t kPages = 4, kPositions = 16;
  const auto values = [&](uint64_t seed, int64_t heads, int64_t dim) {
    std::vector<float> all = random_values(seed, c.n * heads * dim, c.dtype);
    for (float& x : all) x *= 4;
    return all;
  };
  const Tensor q =
      put(backend, values(1, c.n_heads, c.head_dim), c.activations, {c.n, c.n_heads, c.head_dim});
  const Tensor k = put(backend, values(2, c.n_kv_heads, c.head_dim), c.activations,
                       {c.n, c.n_kv_heads, c.head_dim});
  std::vector<float> v_values = values(3, c.n_kv_heads, c.v_dim());
  v_values[0] = INFINITY;
  const Tensor v = put(backend, v_values, c.activations, {c.n, c.n_kv_heads, c.v_dim()});
  const Tensor rope = put(backend, random_values(4, kPositions * c.rotary_dim, DType::f32),
                          DType::f32, {kPositions, c.rotary_dim});
  std::vector<int32_t> positions, slots;
  for (int64_t i = 0; i < c.n; ++i) {
    positions.push_back(static_cast<int32_t>(i * 5 % kPositions));
    slots.push_back(static_cast<int32_t>(kPages * c.page_size - 1 - i));
  }
  const Tensor positions_tensor = put(backend, positions, {c.n});
  const Tensor slots_tensor = put(backend, slots, {c.n});
  const Tensor indptr = put(backend, std::vector<int32_t>{0, static_cast<int32_t>(c.n)}, {2});
  const Tensor table = put(backend, std::vector<int32_t>{0}, {1, 1});
  const int64_t rows = kPages * c.n_kv_heads * c.page_size;
  const Tensor k_pool = backend.allocate(c.cache, {rows, c.head_dim});
  const Tensor v_pool = backend.allocate(c.cache, {rows, c.v_dim()});
  const Tensor scales = put(backend, {0.013f, 0.3f, 0.07f, 0.0021f}, DType::f32, {4});
  const Tensor magnitudes = backend.allocate(DType::u64, {3, c.n_kv_heads, kMagnitudeWords});
  RopeAppend args{q.view(), k.view(), v.view(), rope.view(), {}, {}, c.dtype, magnitudes.view()};
  args.pairs = c.pairs;
  if (!c.observed) args.magnitudes.reset();
  args.batch = {positions_tensor.view(), slots_tensor.view(), indptr.view(), table.view(), {}};
  args.kv.k = k_pool.view().data;
  args.kv.v = v_pool.view().data;
  if (fp8_format(c.cache)) {
    args.kv.k_scale = scales.view().as<const float>();
    args.kv.v_scale = scales.view().as<const float>() + 1;
  }
  args.kv.k_format = args.kv.v_format = kv_format(c.cache);
  args.kv.page_size = static_cast<int32_t>(c.page_size);
  args.kv.n_kv_heads = static_cast<int32_t>(c.n_kv_heads);
  args.kv.head_dim = static_cast<int32_t>(c.head_dim);
  args.kv.own_v_dim = static_cast<int32_t>(c.own_v_dim);
  backend.rope_append(args);
  RopeOutcome out{get(backend, q.view()),
                  get(backend, k.view()),
                  bytes_of(backend, k_pool.view()),
                  bytes_of(backend, v_pool.view()),
                  {}};
  const std::vector<std::byte> words = bytes_of(backend, magnitudes.view());
  out.magnitudes.resize(words.size() / 8);
  std::memcpy(out.magnitudes.data(), words.data(), words.size());
  return out;
}

void check_rope(Backend& cpu, Backend& gpu, RopeCase c) {
  CAPTURE(std::string(dtype_name(c.cache)));
  CAPTURE(c.head_dim);
  CAPTURE(c.rotary_dim);
  const RopeOutcome expected = run_rope(cpu, c);
  c.activations = c.dtype;
  const RopeOutcome actual = run_rope(gpu, c);
  CHECK(actual.q == expected.q);
  CHECK(actual.k == expected.k);
  CHECK((actual.k_cache == expected.k_cache));
  CHECK((actual.v_cache == expected.v_cache));
  CHECK((actual.magnitudes == expected.magnitudes));
}

}  // namespace

TEST_CASE("gpu rope_append: has the CPU's bits in Q, K, the cache and the statistics") {
  const auto cpu = make_cpu_backend(1);
  on_every_backend_and_type([&](Backend& backend, DType dtype) {
    for (const DType cache : test::cache_types()) {
      for (const int64_t head_dim : {6, 64, 96, 512}) {
        RopeCase c{dtype, cache, 5, head_dim, 6, 2, 16, DType::f32, head_dim};
        if (head_dim == 64) c.n = 67;
        if (head_dim == 64) c.page_size = 64;
        check_rope(*cpu, backend, c);
        c.observed = false;
        if (head_dim <= 64) check_rope(*cpu, backend, c);
      }
    }
  });
}

TEST_CASE("gpu rope_append: V may have fewer elements than K") {
  const auto cpu = make_cpu_backend(1);
  on_every_backend_and_type([&](Backend& backend, DType dtype) {
    for (const DType cache : test::cache_types()) {
      RopeCase c{dtype, cache, 5, 192, 6, 2, 16, DType::f32, 64};
      c.own_v_dim = 128;
      check_rope(*cpu, backend, c);
      c.own_v_dim = 6;  // not in vectors
      check_rope(*cpu, backend, c);
    }
  });
}

TEST_CASE("gpu rope_append: rotates a part of a head, and neighbours, with the CPU's bits") {
  const auto cpu = make_cpu_backend(1);
  on_every_backend_and_type([&](Backend& backend, DType dtype) {
    for (const DType cache : {DType::f8_e4m3, dtype}) {
      for (const int64_t rotary_dim : {2, 4, 32, 48, 64}) {
        RopeCase c{dtype, cache, 5, 64, 6, 2, 16, DType::f32, rotary_dim};
        check_rope(*cpu, backend, c);
        c.pairs = RopePairs::neighbours;
        check_rope(*cpu, backend, c);
      }
    }
  });
}

TEST_CASE("gpu backend: gives the same bits in any order of threads, warps and blocks") {
  on_every_backend([](Backend& backend) {
    const RopeCase c{DType::bf16, DType::f8_e4m3, 67, 64, 6, 2, 64, DType::bf16, 64};
    const RopeOutcome expected = run_rope(backend, c);
    const std::vector<float> x = random_values(8, 40 * 64, DType::bf16);
    const Tensor in = put(backend, x, DType::bf16, {40, 64});
    const Tensor weight =
        put(backend, random_values(9, 70 * 64, DType::bf16), DType::bf16, {70, 64});
    const auto product = [&] {
      const Tensor out = backend.allocate(DType::f32, {40, 70});
      backend.linear(in.view(), std::array{Projection{weight.view(), {}, out.view()}});
      return get(backend, out.view());
    };
    const std::vector<float> expected_product = product();
    for (uint64_t seed = 1; seed < 4u; ++seed) {
      CAPTURE(seed);
      test::set_order(seed);
      const RopeOutcome actual = run_rope(backend, c);
      const std::vector<float> actual_product = product();
      test::set_order(0);
      CHECK((actual.k_cache == expected.k_cache));
      CHECK((actual.magnitudes == expected.magnitudes));
      CHECK((actual_product == expected_product));
    }
  });
}

}  // namespace fp8kv
