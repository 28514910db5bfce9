// Latent attention's ops on made-up values, shared by tests of the CPU and of GPUs.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "base/rng.h"
#include "core/cache/cache_type.h"
#include "core/numbers/histogram.h"
#include "support/backends/cpu.h"
#include "support/backends/typed_tensors.h"

namespace fp8kv::test {

// One sequence of `tokens`, all of them rows of the step. Its cache is in pages of four that are
// handed out backwards.
struct LatentScene {
  int64_t tokens = 11;
  int64_t n_heads = 3;
  int64_t rope_dim = 6;
  int64_t rank = 20;
  CacheType cache = DType::f32;
  bool v_in_k = true;  // else V is all of K, in a pool of its own
  float scale = 0.05f;
  std::vector<float> queries = {};   // [tokens, n_heads, head_dim]; empty: random ones
  std::vector<int32_t> chosen = {};  // [tokens, chosen_count]: see AttentionOptions; empty: none
  int64_t chosen_count = 0;
  DType round_to = DType::f32;     // see RopeAppend
  DType activations = DType::f32;  // REQUIRES numbers of round_to, or f32

  static constexpr int32_t kPageSize = 4;
  int64_t head_dim() const { return rope_dim + rank; }
  LatentBlocks blocks() const {
    return {static_cast<int32_t>(rank), static_cast<int32_t>(rope_dim)};
  }
  int64_t pages() const { return (tokens + kPageSize - 1) / kPageSize; }
  std::vector<float> values(uint64_t seed, int64_t count) const {
    Rng rng(seed);
    return random_floats(rng, count);
  }
  // The rotated part of K, and the latents. Magnitudes differ from block to block and from token to
  // token; the first latent is all zeros.
  std::vector<float> rotated() const { return values(2, tokens * rope_dim); }
  std::vector<float> latent() const {
    std::vector<float> all = values(3, tokens * rank);
    if (cache.k != KvFormat::ds_mla) return all;
    for (size_t i = 0; i < all.size(); ++i) {
      const int64_t block = static_cast<int64_t>(i) / kLatentBlock;
      all[i] = static_cast<int64_t>(i) < rank ? 0.0f
                                              : std::ldexp(all[i], static_cast<int>(block % 9) - 4);
    }
    return all;
  }
};

struct LatentOutcome {
  std::vector<float> attended;      // [tokens, n_heads, rank]
  std::vector<std::byte> cache;     // the pool of K
  std::vector<float> amax;          // maxima of Q, K and V
  std::vector<uint64_t> n_counted;  // counts of Q, K and V
};

// Appends K and V, rotated by nothing, and attends.
inline LatentOutcome run_latent(Backend& backend, const LatentScene& s,
                                const std::vector<float>& rotated,
                                const std::vector<float>& latent) {
  const int64_t n = s.tokens, size = s.head_dim();
  const std::vector<float> queries =
      s.queries.empty() ? s.values(1, n * s.n_heads * size) : s.queries;
  const Tensor q = put(backend, queries, s.activations, {n, s.n_heads, size});
  std::vector<float> whole;
  for (int64_t row = 0; row < n; ++row) {
    whole.insert(whole.end(), rotated.begin() + row * s.rope_dim,
                 rotated.begin() + (row + 1) * s.rope_dim);
    whole.insert(whole.end(), latent.begin() + row * s.rank, latent.begin() + (row + 1) * s.rank);
  }
  const Tensor k = s.v_in_k ? put(backend, rotated, s.activations, {n, 1, s.rope_dim})
                            : put(backend, whole, s.activations, {n, 1, size});
  const Tensor v = s.v_in_k ? put(backend, latent, s.activations, {n, 1, s.rank})
                            : put(backend, whole, s.activations, {n, 1, size});
  std::vector<int32_t> positions, zeros(static_cast<size_t>(n)), slots, table;
  for (int64_t page = 0; page < s.pages(); ++page) {
    table.push_back(static_cast<int32_t>(s.pages() - 1 - page));
  }
  for (int32_t i = 0; i < n; ++i) {
    positions.push_back(i);
    const auto page = static_cast<size_t>(i / LatentScene::kPageSize);
    slots.push_back(table[page] * LatentScene::kPageSize + i % LatentScene::kPageSize);
  }
  const Tensor at = tensor_of(backend, positions, {n});
  const Tensor nowhere = tensor_of(backend, zeros, {n});
  const Tensor slot = tensor_of(backend, slots, {n});
  const Tensor indptr = tensor_of(backend, std::vector<int32_t>{0, static_cast<int32_t>(n)}, {2});
  const Tensor pages = tensor_of(backend, table, {1, s.pages()});
  const Tensor context = tensor_of(backend, std::vector<int32_t>{static_cast<int32_t>(n)}, {1});
  const Tensor rope = tensor_of(backend, std::vector<float>{1, 0}, {1, 2});
  const Tensor scale = tensor_of(backend, std::vector<float>{s.scale}, {1});
  const Tensor magnitudes = backend.allocate(DType::u64, Shape{3, 1, kMagnitudeWords});
  const bool blocks = s.cache.k == KvFormat::ds_mla;
  const Shape pool{s.pages(), 1, LatentScene::kPageSize, blocks ? s.blocks().bytes() : size};
  const DType element = kv_elements(s.cache).value_or(DType::u8);
  const Tensor k_pool = backend.allocate(element, pool), v_pool = backend.allocate(element, pool);
  PagedKv kv;
  kv.k = k_pool.view().data;
  kv.v = v_pool.view().data;
  if (s.v_in_k) {
    const auto before = static_cast<size_t>(blocks ? 0 : s.rope_dim);
    kv.v = k_pool.view().data + before * dtype_bytes(element);
    kv.v_in_k = static_cast<int32_t>(s.rank);
  }
  if (fp8_format(s.cache)) kv.k_scale = kv.v_scale = scale.view().as<const float>();
  kv.k_format = s.cache.k;
  kv.v_format = s.cache.v;
  kv.page_size = LatentScene::kPageSize;
  kv.n_kv_heads = 1;
  kv.head_dim = static_cast<int32_t>(size);
  Batch batch{nowhere.view(), slot.view(), indptr.view(), pages.view(), context.view()};
  backend.rope_append({.q = q.view(),
                       .k = k.view(),
                       .v = v.view(),
                       .rope = rope.view(),
                       .batch = batch,
                       .kv = kv,
                       .round_to = s.round_to,
                       .magnitudes = magnitudes.view()});
  batch.positions = at.view();
  const int64_t v_dim = kv.v_dim();
  const Tensor out = backend.allocate(s.activations, Shape{n, s.n_heads, v_dim});
  AttentionOptions options{.scale = 0.2f};
  Tensor chosen;
  if (!s.chosen.empty()) {
    chosen = tensor_of(backend, s.chosen, {n, s.chosen_count});
    options.chosen = chosen.view();
  }
  backend.attention(q.view(), kv, batch, options, out.view());

  LatentOutcome outcome;
  const std::vector<float> all = get(backend, out.view());
  for (int64_t row = 0; row < n * s.n_heads; ++row) {
    const auto end = all.begin() + (row + 1) * v_dim;
    outcome.attended.insert(outcome.attended.end(), end - s.rank, end);
  }
  outcome.cache.resize(k_pool.view().bytes());
  backend.download(k_pool.view(), outcome.cache);
  std::vector<uint64_t> words(static_cast<size_t>(3 * kMagnitudeWords));
  backend.download(magnitudes.view(), std::as_writable_bytes(std::span(words)));
  for (size_t part = 0; part < 3; ++part) {
    const uint64_t* own = words.data() + part * kMagnitudeWords;
    outcome.amax.push_back(float_from_bits(static_cast<uint32_t>(own[kMagnitudeAmax])));
    uint64_t counted = 0;
    for (int bin = 0; bin < kMagnitudeBins; ++bin) counted += own[kMagnitudeFirstBin + bin];
    outcome.n_counted.push_back(counted);
  }
  return outcome;
}

inline LatentOutcome run_latent(Backend& backend, const LatentScene& s) {
  return run_latent(backend, s, s.rotated(), s.latent());
}

inline float largest_magnitude(const std::vector<float>& values) {
  float most = 0;
  for (const float value : values) most = std::max(most, std::abs(value));
  return most;
}

// Products of 3 heads. They read elements [2, 23) of a head's 29, and write elements [4, 67) of its
// 70.
struct HeadsCase {
  int64_t rows = 6;
  DType dtype = DType::f32;
  int64_t n_heads = 3;
  int64_t x_width = 29, x_first = 2, in_dim = 21;
  int64_t out_width = 70, out_first = 4, out_dim = 63;
};

// [n, n_heads, out_width]; elements that no product writes stay -1.
inline std::vector<float> run_heads(Backend& backend, const HeadsCase& c,
                                    const std::vector<float>& x, const ConstTensorView& weights) {
  const Tensor in = put(backend, x, c.dtype, {c.rows, c.n_heads, c.x_width});
  const std::vector<float> before(static_cast<size_t>(c.rows * c.n_heads * c.out_width), -1);
  const Tensor out = put(backend, before, c.dtype, {c.rows, c.n_heads, c.out_width});
  backend.linear_heads({in.view(), c.x_first}, weights, {out.view(), c.out_first});
  return get(backend, out.view());
}

}  // namespace fp8kv::test
