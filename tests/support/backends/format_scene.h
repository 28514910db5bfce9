// A cache of any format: its rows, the contents of its pools, and attention over it. Tests of the
// CPU and of GPUs share it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "base/rng.h"
#include "core/cache/cache_type.h"
#include "support/backends/cpu.h"
#include "support/backends/typed_tensors.h"

namespace fp8kv::test {

// One sequence of `tokens` rows, rotated by nothing, in pages of four that are handed out
// backwards.
struct FormatScene {
  CacheType cache;
  int64_t tokens = 37;
  int64_t n_heads = 4;
  int64_t n_kv_heads = 2;
  int64_t head_dim = 32;
  int64_t own_v_dim = 0;  // of V; 0: head_dim
  DType round_to = DType::f32;
  DType activations = DType::f32;  // REQUIRES numbers of round_to, or f32
  int64_t rotary_dim = 2;
  int64_t window = 0;
  float cap = 0;
  float q_scale = 0;         // see PagedKv
  bool toward_zero = false;  // see PagedKv

  static constexpr int32_t kPageSize = 4;
  static constexpr float kKScale = 0.0031f, kVScale = 0.0007f, kScoreScale = 0.2f;

  int64_t v_dim() const { return own_v_dim > 0 ? own_v_dim : head_dim; }
  int64_t pages() const { return (tokens + kPageSize - 1) / kPageSize; }
  int32_t page(int64_t index) const { return static_cast<int32_t>(pages() - 1 - index); }
  // Magnitudes differ from token to token, and one channel is large.
  std::vector<float> values(uint64_t seed, int64_t heads, int64_t dim) const {
    Rng rng(seed);
    std::vector<float> all = random_floats(rng, tokens * heads * dim);
    for (size_t i = 0; i < all.size(); ++i) {
      const auto token = static_cast<int>(static_cast<int64_t>(i) / (heads * dim));
      all[i] = std::ldexp(all[i], token % 5 - 2);
      if (static_cast<int64_t>(i) % dim == 5) all[i] = all[i] * 3.0f + 4.0f;
    }
    return all;
  }
  // The largest error of attention in f32 against exact arithmetic over the same rows. A score is a
  // sum of head_dim products, and errs by (head_dim + 2) roundings of the sum of their magnitudes.
  // A weight errs by twice that of its largest score, and a sum of `tokens` weights by one rounding
  // each. A rotated head has elements up to sqrt(head_dim) times as large.
  double allowed_error() const {
    constexpr double kUnit = 0x1p-24;
    const auto largest = [](const std::vector<float>& all) {
      double most = 0;
      for (const float x : all) most = std::max(most, std::abs(double{x}));
      return most;
    };
    const auto dim = static_cast<double>(head_dim);
    const double growth = kv_spec(cache.k).rotated ? dim : 1;
    // Formats may enlarge an element by half a step: at most a fifth.
    const double score = dim * largest(q()) * 1.2 * largest(k()) * double{kScoreScale} * growth;
    // tanh adds a few roundings of the cap.
    const double score_error = (dim + 2) * kUnit * score + 8 * kUnit * double{cap};
    const double weight = 2 * score_error + static_cast<double>(tokens + 8) * kUnit;
    return weight * 1.2 * largest(v()) * growth;
  }
  std::vector<float> q() const { return values(1, n_heads, head_dim); }
  std::vector<float> k() const { return values(2, n_kv_heads, head_dim); }
  std::vector<float> v() const { return values(3, n_kv_heads, v_dim()); }
};

struct FormatOutcome {
  std::vector<uint8_t> k, v;    // the pools
  std::vector<float> attended;  // [tokens, n_heads, v_dim]
};

inline std::vector<uint8_t> bytes_of(Backend& backend, const Tensor& pool) {
  std::vector<uint8_t> bytes(pool.view().bytes());
  backend.download(pool.view(), std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

inline FormatOutcome run_format(Backend& backend, const FormatScene& s) {
  const int64_t n = s.tokens;
  const Tensor q = put(backend, s.q(), s.activations, {n, s.n_heads, s.head_dim});
  const Tensor k = put(backend, s.k(), s.activations, {n, s.n_kv_heads, s.head_dim});
  const Tensor v = put(backend, s.v(), s.activations, {n, s.n_kv_heads, s.v_dim()});
  std::vector<int32_t> positions, table, slots;
  for (int64_t i = 0; i < s.pages(); ++i) table.push_back(s.page(i));
  for (int32_t i = 0; i < n; ++i) {
    positions.push_back(i);
    slots.push_back(s.page(i / s.kPageSize) * s.kPageSize + i % s.kPageSize);
  }
  const Tensor zeros = tensor_of(backend, std::vector<int32_t>(static_cast<size_t>(n)), {n});
  const Tensor at = tensor_of(backend, positions, {n}), slot = tensor_of(backend, slots, {n});
  const Tensor indptr = tensor_of(backend, std::vector<int32_t>{0, static_cast<int32_t>(n)}, {2});
  const Tensor pages = tensor_of(backend, table, {1, s.pages()});
  const Tensor context = tensor_of(backend, std::vector<int32_t>{static_cast<int32_t>(n)}, {1});
  std::vector<float> turn(static_cast<size_t>(s.rotary_dim), 0.0f);
  std::fill_n(turn.begin(), s.rotary_dim / 2, 1.0f);
  const Tensor rope = tensor_of(backend, turn, {1, s.rotary_dim});
  const std::vector<float> k_scales(static_cast<size_t>(s.n_kv_heads), s.kKScale);
  const std::vector<float> v_scales(static_cast<size_t>(s.n_kv_heads), s.kVScale);
  const Tensor k_scale = tensor_of(backend, k_scales, {s.n_kv_heads});
  const Tensor v_scale = tensor_of(backend, v_scales, {s.n_kv_heads});
  PagedKv kv;
  kv.k_format = s.cache.k;
  kv.v_format = s.cache.v;
  kv.page_size = FormatScene::kPageSize;
  kv.n_kv_heads = static_cast<int32_t>(s.n_kv_heads);
  kv.head_dim = static_cast<int32_t>(s.head_dim);
  kv.own_v_dim = static_cast<int32_t>(s.own_v_dim);
  kv.q_scale = s.q_scale;
  kv.toward_zero = s.toward_zero;
  const int64_t rows = s.pages() * s.kPageSize * s.n_kv_heads;
  const Tensor k_pool = backend.allocate(DType::u8, Shape{rows, kv.k_row().bytes()});
  const Tensor v_pool = backend.allocate(DType::u8, Shape{rows, kv.v_row().bytes()});
  kv.k = k_pool.view().data;
  kv.v = v_pool.view().data;
  if (kv_spec(kv.k_format).stored_scale) kv.k_scale = k_scale.view().as<const float>();
  if (kv_spec(kv.v_format).stored_scale) kv.v_scale = v_scale.view().as<const float>();
  Batch batch{zeros.view(), slot.view(), indptr.view(), pages.view(), context.view()};
  backend.rope_append({.q = q.view(),
                       .k = k.view(),
                       .v = v.view(),
                       .rope = rope.view(),
                       .batch = batch,
                       .kv = kv,
                       .round_to = s.round_to,
                       .magnitudes = {}});
  batch.positions = at.view();
  const Tensor out = backend.allocate(s.activations, Shape{n, s.n_heads, s.v_dim()});
  backend.attention(q.view(), kv, batch, {.scale = s.kScoreScale, .window = s.window, .cap = s.cap},
                    out.view());
  return {bytes_of(backend, k_pool), bytes_of(backend, v_pool), get(backend, out.view())};
}

// Every cache with K and V of its own whose rows are not elements of one type, and a mixed one.
inline std::vector<CacheType> made_caches() {
  return {KvFormat::nvfp4,
          KvFormat::nvfp4_4over6,
          KvFormat::int8_per_token_head,
          KvFormat::fp8_per_token_head,
          KvFormat::int4_per_token_head,
          {KvFormat::e4m3fn, KvFormat::int4_values},
          {KvFormat::bf16, KvFormat::nvfp4},
          {KvFormat::f32, KvFormat::e5m2},
          {KvFormat::f16, KvFormat::e4m3fnuz}};
}

}  // namespace fp8kv::test
