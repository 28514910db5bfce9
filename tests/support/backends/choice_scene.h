// The choice of tokens by a sparse indexer on made-up values, shared by tests of the CPU and of
// GPUs. All values are small whole numbers, so that every sum is exact and many scores are equal.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/rng.h"
#include "core/cache/cache_type.h"
#include "core/numbers/half.h"
#include "support/backends/cpu.h"

namespace fp8kv::test {

// Two sequences. The first has `before` tokens in its cache whose rows are not in the step; the
// second has two tokens. Pages of four are handed out backwards.
struct ChoiceScene {
  int64_t before = 5;
  int64_t rows = 9;  // of the first sequence
  int64_t n_heads = 3;
  int64_t head_dim = 6;
  int64_t count = 7;
  int64_t scored_rows = 4;
  int64_t block = 1;         // tokens that are chosen together
  int64_t local_blocks = 0;  // see TokenScores
  bool by_head = false;      // each head chooses by itself
  bool pooled = false;       // see TokenScores; `count` includes the row's own block
  DType dtype = DType::f32;  // of Q and the keys on a GPU; on the CPU Q is F32

  static constexpr int64_t kSecond = 2;
  static constexpr int32_t kPageSize = 4;
  int64_t first_tokens() const { return before + rows; }
  int64_t all_rows() const { return rows + kSecond; }
  std::vector<float> values(uint64_t seed, int64_t n) const {
    Rng rng(seed);
    std::vector<float> all(static_cast<size_t>(n));
    for (float& value : all) value = static_cast<float>(static_cast<int>(rng.next() % 5) - 2);
    return all;
  }
  std::vector<float> q() const { return values(1, all_rows() * n_heads * head_dim); }
  std::vector<float> weights() const { return values(2, all_rows() * n_heads); }
  // The keys of the first sequence, then of the second.
  std::vector<float> keys() const { return values(3, (first_tokens() + kSecond) * head_dim); }

  int64_t lists() const { return by_head ? n_heads : 1; }

  // The chosen places of each row and list, by scores in whole numbers and a stable sort.
  std::vector<int32_t> expected() const {
    std::vector<int32_t> chosen;
    for (int64_t row = 0; row < all_rows(); ++row) {
      for (int64_t list = 0; list < lists(); ++list) {
        const std::vector<int64_t> scores = by_head  ? block_scores(row, list)
                                            : pooled ? pooled_scores(row)
                                                     : token_scores(row);
        std::vector<int32_t> places(scores.size());
        std::iota(places.begin(), places.end(), 0);
        std::stable_sort(places.begin(), places.end(), [&](int32_t a, int32_t b) {
          return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
        });
        places.resize(std::min(places.size(), static_cast<size_t>(pooled ? count - 1 : count)));
        std::sort(places.begin(), places.end());
        if (pooled && seen(row) % block > 0) {
          places.push_back(static_cast<int32_t>(seen(row) / block));
        }
        places.resize(static_cast<size_t>(count), -1);
        chosen.insert(chosen.end(), places.begin(), places.end());
      }
    }
    return chosen;
  }

  int64_t seen(int64_t row) const { return row < rows ? before + row + 1 : row - rows + 1; }

 private:
  // Products of a head's query with the keys that the row sees.
  std::vector<int64_t> products(int64_t row, int64_t head) const {
    const std::vector<float> all_q = q(), all_keys = keys();
    const int64_t first_key = row < rows ? 0 : first_tokens();
    std::vector<int64_t> dots(static_cast<size_t>(seen(row)));
    for (int64_t t = 0; t < seen(row); ++t) {
      for (int64_t d = 0; d < head_dim; ++d) {
        dots[static_cast<size_t>(t)] +=
            static_cast<int64_t>(
                all_q[static_cast<size_t>((row * n_heads + head) * head_dim + d)]) *
            static_cast<int64_t>(all_keys[static_cast<size_t>((first_key + t) * head_dim + d)]);
      }
    }
    return dots;
  }

  std::vector<int64_t> token_scores(int64_t row) const {
    const std::vector<float> all_weights = weights();
    std::vector<int64_t> scores;
    for (int64_t head = 0; head < n_heads; ++head) {
      const std::vector<int64_t> dots = products(row, head);
      scores.resize(dots.size());
      for (size_t t = 0; t < dots.size(); ++t) {
        scores[t] += static_cast<int64_t>(all_weights[static_cast<size_t>(row * n_heads + head)]) *
                     std::max<int64_t>(dots[t], 0);
      }
    }
    return scores;
  }

  // The scores of the last token of each whole block.
  std::vector<int64_t> pooled_scores(int64_t row) const {
    const std::vector<int64_t> all = token_scores(row);
    std::vector<int64_t> scores;
    for (int64_t t = block - 1; t < seen(row); t += block) {
      scores.push_back(all[static_cast<size_t>(t)]);
    }
    return scores;
  }

  // The last blocks are above all others.
  std::vector<int64_t> block_scores(int64_t row, int64_t head) const {
    const std::vector<int64_t> dots = products(row, head);
    std::vector<int64_t> scores;
    for (size_t t = 0; t < dots.size(); ++t) {
      const size_t at = t / static_cast<size_t>(block);
      if (at == scores.size()) scores.push_back(dots[t]);
      scores[at] = std::max(scores[at], dots[t]);
    }
    const auto local = std::min(static_cast<size_t>(local_blocks), scores.size());
    std::fill(scores.end() - static_cast<std::ptrdiff_t>(local), scores.end(), INT64_MAX);
    return scores;
  }
};

inline std::vector<int32_t> run_choice(Backend& backend, const ChoiceScene& s) {
  const auto floats = [&](const std::vector<float>& values, const Shape& shape, DType dtype) {
    std::vector<std::byte> bytes(values.size() * dtype_bytes(dtype));
    for (size_t i = 0; i < values.size(); ++i) {
      const uint16_t half =
          dtype == DType::f16 ? f16_from_float(values[i]) : bf16_from_float(values[i]);
      if (dtype == DType::f32) std::memcpy(&bytes[i * 4], &values[i], 4);
      if (dtype != DType::f32) std::memcpy(&bytes[i * 2], &half, 2);
    }
    Tensor tensor = backend.allocate(dtype, shape);
    backend.copy_in(tensor.view(), {bytes.data(), dtype, shape});
    return tensor;
  };
  const int64_t pages_of_first =
      (s.first_tokens() + ChoiceScene::kPageSize - 1) / ChoiceScene::kPageSize;
  std::vector<int32_t> table, positions;
  for (int64_t page = pages_of_first; page > 0; --page) table.push_back(static_cast<int32_t>(page));
  table.push_back(0);  // of the second sequence
  table.resize(static_cast<size_t>(2 * pages_of_first), 0);
  for (int64_t i = 0; i < s.rows; ++i) positions.push_back(static_cast<int32_t>(s.before + i));
  for (int32_t i = 0; i < ChoiceScene::kSecond; ++i) positions.push_back(i);
  const std::vector<float> keys = s.keys();
  std::vector<float> pool(
      static_cast<size_t>((pages_of_first + 1) * ChoiceScene::kPageSize * s.head_dim));
  for (int64_t t = 0; t < s.first_tokens() + ChoiceScene::kSecond; ++t) {
    const bool first = t < s.first_tokens();
    const int64_t at = first ? t : t - s.first_tokens();
    const int64_t page = first ? table[static_cast<size_t>(at / ChoiceScene::kPageSize)] : 0;
    std::copy_n(
        keys.begin() + t * s.head_dim, s.head_dim,
        pool.begin() + (page * ChoiceScene::kPageSize + at % ChoiceScene::kPageSize) * s.head_dim);
  }
  const int64_t n = s.all_rows();
  const Tensor q = floats(s.q(), {n, s.n_heads, s.head_dim}, backend.activation_dtype(s.dtype));
  const Tensor weights = floats(s.weights(), {n, s.n_heads}, DType::f32);
  const Tensor key_pool =
      floats(pool, {static_cast<int64_t>(pool.size()) / s.head_dim, s.head_dim}, s.dtype);
  const int64_t blocks = (s.first_tokens() + s.block - 1) / s.block;
  const Tensor scores = backend.allocate(DType::f32, {s.scored_rows, s.lists() * blocks});
  const Tensor at = tensor_of(backend, positions, {n});
  const Tensor indptr = tensor_of(
      backend, std::vector<int32_t>{0, static_cast<int32_t>(s.rows), static_cast<int32_t>(n)}, {3});
  const Tensor pages = tensor_of(backend, table, {2, pages_of_first});
  const Tensor context = tensor_of(
      backend, std::vector<int32_t>{static_cast<int32_t>(s.first_tokens()), ChoiceScene::kSecond},
      {2});
  const Tensor slots = tensor_of(backend, std::vector<int32_t>(static_cast<size_t>(n)), {n});
  const Tensor chosen =
      backend.allocate(DType::i32, s.by_head ? Shape{n, s.n_heads, s.count} : Shape{n, s.count});
  PagedKv kv;
  kv.k = kv.v = key_pool.view().data;
  kv.k_format = kv.v_format = kv_format(s.dtype);
  kv.page_size = ChoiceScene::kPageSize;
  kv.n_kv_heads = 1;
  kv.head_dim = static_cast<int32_t>(s.head_dim);
  TokenScores args{.q = q.view(),
                   .keys = kv,
                   .scale = 1.0f,
                   .block = s.block,
                   .pooled = s.pooled,
                   .local_blocks = s.local_blocks,
                   .scores = scores.view()};
  if (!s.by_head) args.weights = weights.view();
  backend.choose_tokens(
      args, {at.view(), slots.view(), indptr.view(), pages.view(), context.view()}, chosen.view());
  std::vector<int32_t> found(static_cast<size_t>(n * s.lists() * s.count));
  backend.download(chosen.view(), std::as_writable_bytes(std::span(found)));
  return found;
}

}  // namespace fp8kv::test
