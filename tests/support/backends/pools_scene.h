// Rows that pool blocks of tokens, and attention to them beside a window: on a backend, and in
// double precision.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "base/rng.h"
#include "core/cache/cache_type.h"
#include "core/numbers/fp8.h"
#include "support/backends/attention_scene.h"
#include "support/backends/compare.h"
#include "support/backends/cpu.h"
#include "support/backends/typed_tensors.h"

namespace fp8kv::test {

// The bytes of numbers in a cache of elements, with a scale of 1.
inline std::vector<std::byte> cache_bytes(const std::vector<float>& values, DType dtype) {
  if (dtype_bytes(dtype) > 1) return encoded_as(values, dtype);
  std::vector<std::byte> bytes;
  for (const float x : values) {
    bytes.push_back(std::byte{dtype == DType::f8_e4m3       ? fp8_encode<Fp8Format::e4m3fn>(x)
                              : dtype == DType::f8_e4m3fnuz ? fp8_encode<Fp8Format::e4m3fnuz>(x)
                              : dtype == DType::f8_e5m2     ? fp8_encode<Fp8Format::e5m2>(x)
                                                            : fp8_encode<Fp8Format::e5m2fnuz>(x)});
  }
  return bytes;
}

// One sequence, whose state is in slot 1 of 2 and whose pages of four lie backwards.
struct PoolsScene {
  int64_t tokens = 23;
  int64_t dim = 10;
  int64_t block = 4;
  int64_t parts = 2;
  int64_t n_heads = 3;
  int64_t window = 5;
  // The blocks that each row sees; absent: all that have ended.   [tokens, count]
  std::optional<std::vector<int32_t>> chosen = {};
  bool sinks = true;
  DType dtype = DType::f32;
  std::optional<DType> cache = {};  // of K and V; absent: dtype

  DType cached_as() const { return cache.value_or(dtype); }
  float k_scale() const { return dtype_bytes(cached_as()) == 1 ? 0.5f : 1.0f; }
  float v_scale() const { return dtype_bytes(cached_as()) == 1 ? 2.0f : 1.0f; }

  static constexpr int32_t kPage = 4;
  static constexpr float kScale = 0.4f;
  int64_t width() const { return parts * dim; }
  int64_t pages() const { return (tokens + kPage - 1) / kPage; }
  std::vector<float> random(uint64_t seed, int64_t count) const {
    Rng rng(seed);
    return rounded_to(random_floats(rng, count), dtype);
  }
  std::vector<float> rows() const { return random(1, tokens * width()); }
  std::vector<float> gates() const { return random(2, tokens * width()); }
  std::vector<float> bias() const { return random(3, block * width()); }
  std::vector<float> q() const { return random(4, tokens * n_heads * dim); }
  std::vector<float> k_codes() const { return random(5, tokens * dim); }
  std::vector<float> v_codes() const { return random(6, tokens * dim); }
  // The numbers that the cache has for them.
  std::vector<float> read_back(std::vector<float> values, float scale) const {
    const std::vector<std::byte> bytes = cache_bytes(values, cached_as());
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(cached(bytes, cached_as(), i)) * scale;
    }
    return values;
  }
  std::vector<float> k() const { return read_back(k_codes(), k_scale()); }
  std::vector<float> v() const { return read_back(v_codes(), v_scale()); }
  std::vector<float> sink() const { return random(7, n_heads); }

  // [tokens, dim]: zeros for tokens that end no block
  std::vector<double> exact_pools() const {
    const std::vector<float> x = rows(), gate = gates(), added = bias();
    std::vector<double> out(static_cast<size_t>(tokens * dim));
    for (int64_t end = block; end <= tokens; end += block) {
      for (int64_t i = 0; i < dim; ++i) {
        double sum = 0, weighed = 0;
        for (int64_t t = std::max<int64_t>(0, end - block * parts); t < end; ++t) {
          const int64_t column = (parts == 2 && t >= end - block ? dim : 0) + i;
          const auto at = static_cast<size_t>(t * width() + column);
          const auto place = static_cast<size_t>(t % block * width() + column);
          const double weight = std::exp(double{gate[at]} + double{added[place]});
          sum += weight;
          weighed += weight * double{x[at]};
        }
        out[static_cast<size_t>((end - 1) * dim + i)] = weighed / sum;
      }
    }
    return out;
  }

  // Whether a row sees the pooled row of a block.
  bool sees(int64_t row, int64_t number) const {
    if (number >= (row + 1) / block) return false;
    if (!chosen) return true;
    const int64_t count = std::ssize(*chosen) / tokens;
    const auto begin = chosen->begin() + row * count;
    return std::find(begin, begin + count, static_cast<int32_t>(number)) != begin + count;
  }

  // [tokens, n_heads, dim]
  std::vector<double> exact_attention() const {
    const std::vector<float> all_q = q(), keys = k(), pools = v(), scores = sink();
    std::vector<double> out(all_q.size());
    for (int64_t row = 0; row < tokens; ++row) {
      std::vector<const float*> seen;
      for (int64_t number = 0; number < tokens / block; ++number) {
        if (sees(row, number)) seen.push_back(pools.data() + ((number + 1) * block - 1) * dim);
      }
      for (int64_t t = std::max<int64_t>(0, row + 1 - window); t <= row; ++t) {
        seen.push_back(keys.data() + t * dim);
      }
      for (int64_t head = 0; head < n_heads; ++head) {
        const float* own = all_q.data() + (row * n_heads + head) * dim;
        double sum = sinks ? std::exp(double{scores[static_cast<size_t>(head)]}) : 0;
        std::vector<double> weighed(static_cast<size_t>(dim));
        for (const float* each : seen) {
          const double product = std::inner_product(own, own + dim, each, 0.0);
          const double weight = std::exp(product * double{kScale});
          sum += weight;
          for (size_t i = 0; i < weighed.size(); ++i) weighed[i] += weight * double{each[i]};
        }
        for (size_t i = 0; i < weighed.size(); ++i) {
          out[static_cast<size_t>((row * n_heads + head) * dim) + i] = weighed[i] / sum;
        }
      }
    }
    return out;
  }
};

struct PoolsOutcome {
  std::vector<float> pools;     // [tokens, dim]
  std::vector<float> attended;  // [tokens, n_heads, dim]
  bool operator==(const PoolsOutcome&) const = default;
};

// Runs both ops in steps of these sizes.
inline PoolsOutcome run_pools(Backend& backend, const PoolsScene& s,
                              const std::vector<int64_t>& steps) {
  std::vector<int32_t> table(static_cast<size_t>(s.pages()));
  for (size_t i = 0; i < table.size(); ++i) {
    table[i] = static_cast<int32_t>(table.size() - 1 - i);
  }
  const auto slot_of = [&](int64_t position) {
    return table[static_cast<size_t>(position / PoolsScene::kPage)] * PoolsScene::kPage +
           static_cast<int32_t>(position % PoolsScene::kPage);
  };
  const int64_t slots = s.pages() * PoolsScene::kPage;
  const auto in_slots = [&](const std::vector<float>& rows) {
    std::vector<float> all(static_cast<size_t>(slots * s.dim));
    for (int64_t t = 0; t < s.tokens; ++t) {
      std::copy_n(rows.begin() + t * s.dim, s.dim, all.begin() + slot_of(t) * s.dim);
    }
    Tensor tensor = backend.allocate(s.cached_as(), Shape{slots, s.dim});
    const std::vector<std::byte> bytes = cache_bytes(all, s.cached_as());
    backend.copy_in(tensor.view(), {bytes.data(), s.cached_as(), Shape{slots, s.dim}});
    return tensor;
  };
  const Tensor k = in_slots(s.k_codes()), v = in_slots(s.v_codes());
  const Tensor k_scale = tensor_of(backend, std::vector<float>{s.k_scale()}, {1});
  const Tensor v_scale = tensor_of(backend, std::vector<float>{s.v_scale()}, {1});
  const Tensor state =
      put(backend, std::vector<float>(static_cast<size_t>(4 * s.block * s.parts * s.width()), 3.0f),
          DType::f32, {2, s.block * s.parts, 2 * s.width()});
  const Tensor bias = put(backend, s.bias(), s.dtype, {s.block, s.width()});
  const Tensor sinks = put(backend, s.sink(), s.dtype, {s.n_heads});
  const Tensor pages = tensor_of(backend, table, {1, s.pages()});
  const Tensor slot = tensor_of(backend, std::vector<int32_t>{1}, {1});
  PagedKv kv;
  kv.k = k.view().data;
  kv.v = v.view().data;
  kv.k_format = kv.v_format = kv_format(s.cached_as());
  if (dtype_bytes(s.cached_as()) == 1) {
    kv.k_scale = k_scale.view().as<float>();
    kv.v_scale = v_scale.view().as<float>();
  }
  kv.page_size = PoolsScene::kPage;
  kv.n_kv_heads = 1;
  kv.head_dim = kv.own_v_dim = static_cast<int32_t>(s.dim);
  const DType activation = backend.activation_dtype(s.dtype);
  PoolsOutcome out;
  int64_t first = 0;
  for (const int64_t count : steps) {
    const auto rows_of = [&](const std::vector<float>& all, const Shape& shape) {
      const auto begin = all.begin() + first * (shape.elements() / count);
      return put(backend, std::vector<float>(begin, begin + shape.elements()), activation, shape);
    };
    std::vector<int32_t> positions(static_cast<size_t>(count)), places;
    std::iota(positions.begin(), positions.end(), static_cast<int32_t>(first));
    for (const int32_t position : positions) places.push_back(slot_of(position));
    const auto context = static_cast<int32_t>(first + count);
    const Tensor at = tensor_of(backend, positions, {count});
    const Tensor to = tensor_of(backend, places, {count});
    const Tensor indptr =
        tensor_of(backend, std::vector<int32_t>{0, static_cast<int32_t>(count)}, {2});
    const Tensor length = tensor_of(backend, std::vector<int32_t>{context}, {1});
    const Batch batch{at.view(),    to.view(),     indptr.view(),
                      pages.view(), length.view(), slot.view()};
    const Tensor x = rows_of(s.rows(), {count, s.width()});
    const Tensor gates = rows_of(s.gates(), {count, s.width()});
    const Tensor q = rows_of(s.q(), {count, s.n_heads, s.dim});
    const Tensor pooled = backend.allocate(activation, Shape{count, s.dim});
    const Tensor attended = backend.allocate(activation, Shape{count, s.n_heads, s.dim});
    backend.pool_tokens({x.view(), gates.view(), bias.view(), s.block, s.parts, state.view()},
                        batch, pooled.view());
    AttentionOptions options{.scale = PoolsScene::kScale, .window = s.window};
    options.pool = s.block;
    if (s.sinks) options.sinks = sinks.view();
    Tensor chosen;
    if (s.chosen) {
      const int64_t lists = std::ssize(*s.chosen) / s.tokens;
      const auto begin = s.chosen->begin() + first * lists;
      chosen =
          tensor_of(backend, std::vector<int32_t>(begin, begin + count * lists), {count, lists});
      options.chosen = chosen.view();
    }
    backend.attention(q.view(), kv, batch, options, attended.view());
    for (const auto& [from, all] : {std::pair{&pooled, &out.pools}, {&attended, &out.attended}}) {
      const std::vector<float> part = get(backend, from->view());
      all->insert(all->end(), part.begin(), part.end());
    }
    first += count;
  }
  return out;
}

// Allowed errors of results that are means of numbers of about 1: weights are off by some ten
// roundings, and the result is rounded to the type.
inline std::vector<double> pools_allowed(const std::vector<double>& exact, DType dtype) {
  std::vector<double> allowed;
  for (const double each : exact) {
    allowed.push_back(64 * kUnitF32 * (std::abs(each) + 1) + rounding_of(each, dtype));
  }
  return allowed;
}

// Checks both ops against double precision, and that how rows are cut into steps changes no bit.
inline void check_pools(Backend& backend, const PoolsScene& scene) {
  const PoolsOutcome found = run_pools(backend, scene, {scene.tokens});
  const std::vector<double> pools = scene.exact_pools(), attended = scene.exact_attention();
  const DType rounded = backend.activation_dtype(scene.dtype);
  expect_close(found.pools, pools, pools_allowed(pools, rounded));
  expect_close(found.attended, attended, pools_allowed(attended, rounded));
  CHECK(run_pools(backend, scene, {1, 1, 7, scene.tokens - 9}) == found);
  CHECK(run_pools(backend, scene, std::vector<int64_t>(static_cast<size_t>(scene.tokens), 1)) ==
        found);
}

}  // namespace fp8kv::test
