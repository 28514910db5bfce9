// Keys of an indexer that are stored with those of whole blocks pooled: on a backend, and in double
// precision.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "backend/backend.h"
#include "base/rng.h"
#include "core/cache/cache_type.h"
#include "support/backends/compare.h"
#include "support/backends/cpu.h"
#include "support/backends/typed_tensors.h"

namespace fp8kv::test {

// One sequence, whose pages of four lie backwards.
struct PooledScene {
  int64_t tokens = 14;
  int64_t dim = 10;
  int64_t rotary = 6;
  int64_t block = 4;
  DType dtype = DType::f32;

  static constexpr int32_t kPage = 4;
  int64_t pages() const { return (tokens + kPage - 1) / kPage; }
  std::vector<float> random(uint64_t seed, int64_t count) const {
    Rng rng(seed);
    return rounded_to(random_floats(rng, count), dtype);
  }
  std::vector<float> keys() const { return random(1, tokens * dim); }
  std::vector<float> weights() const { return random(2, dim); }
  std::vector<float> rope() const {
    std::vector<float> table;
    for (int64_t position = 0; position < tokens; ++position) {
      for (const bool sine : {false, true}) {
        for (int64_t i = 0; i < rotary / 2; ++i) {
          const double angle = static_cast<double>(position) / (1.0 + static_cast<double>(i));
          table.push_back(static_cast<float>(sine ? std::sin(angle) : std::cos(angle)));
        }
      }
    }
    return table;
  }

  static constexpr float kEps = 0.01f, kOffset = 1.0f;

  // The error of element `i` of `exact` before it is stored. The mean and the normed key are
  // rounded to the type, and the mean's error changes its norm: three errors of the largest element
  // at most, which a rotation may have made smaller by a root of 2. A rotation adds such errors of
  // two elements. Sums in F32 add little to that.
  double roundings(const std::vector<double>& exact, size_t i) const {
    const auto size = static_cast<size_t>(dim);
    const auto row = exact.begin() + static_cast<std::ptrdiff_t>(i / size * size);
    double largest = 0;
    for (auto each = row; each != row + dim; ++each) {
      largest = std::max(largest, std::sqrt(2.0) * std::abs(*each));
    }
    return std::sqrt(2.0) * 3 * (rounding_of(largest, dtype) + 16 * kUnitF32 * largest);
  }

  // The stored keys in the order of tokens, without roundings.   [tokens, dim]
  std::vector<double> exact() const {
    const std::vector<float> all = keys(), weight = weights(), table = rope();
    std::vector<double> stored(all.begin(), all.end());
    for (int64_t end = block; end <= tokens; end += block) {
      std::vector<double> key(static_cast<size_t>(dim));
      double squares = 0;
      for (int64_t i = 0; i < dim; ++i) {
        double& mean = key[static_cast<size_t>(i)];
        for (int64_t t = end - block; t < end; ++t) mean += all[static_cast<size_t>(t * dim + i)];
        mean /= static_cast<double>(block);
        squares += mean * mean;
      }
      const double rms = std::sqrt(squares / static_cast<double>(dim) + kEps);
      for (size_t i = 0; i < key.size(); ++i) key[i] *= (weight[i] + kOffset) / rms;
      const auto half = static_cast<size_t>(rotary / 2);
      const float* angles = table.data() + (end - block) * rotary;
      for (size_t i = 0; i < half; ++i) {
        const double first = key[i], second = key[i + half];
        key[i] = first * angles[i] - second * angles[i + half];
        key[i + half] = second * angles[i] + first * angles[i + half];
      }
      std::copy(key.begin(), key.end(), stored.begin() + (end - 1) * dim);
    }
    return stored;
  }
};

// The stored keys in the order of tokens, after steps of these sizes.   [tokens, dim]
inline std::vector<float> run_pooled(Backend& backend, const PooledScene& s,
                                     const std::vector<int64_t>& steps) {
  const DType activation = backend.activation_dtype(s.dtype);
  std::vector<int32_t> table(static_cast<size_t>(s.pages()));
  for (size_t i = 0; i < table.size(); ++i) {
    table[i] = static_cast<int32_t>(table.size() - 1 - i);
  }
  const int64_t slots = s.pages() * PooledScene::kPage;
  const Tensor pool = put(backend, std::vector<float>(static_cast<size_t>(slots * s.dim), 7.0f),
                          s.dtype, {slots, s.dim});
  const Tensor weight = put(backend, s.weights(), s.dtype, {s.dim});
  const Tensor rope = tensor_of(backend, s.rope(), {s.tokens, s.rotary});
  const Tensor pages = tensor_of(backend, table, {1, s.pages()});
  const auto slot_of = [&](int64_t position) {
    return table[static_cast<size_t>(position / PooledScene::kPage)] * PooledScene::kPage +
           static_cast<int32_t>(position % PooledScene::kPage);
  };
  const std::vector<float> keys = s.keys();
  PooledAppend args;
  args.block = s.block;
  args.norm = {.eps = PooledScene::kEps, .weight_offset = PooledScene::kOffset};
  args.norm.weight = weight.view();
  args.rope = rope.view();
  args.keys.k = args.keys.v = pool.view().data;
  args.keys.k_format = args.keys.v_format = kv_format(s.dtype);
  args.keys.page_size = PooledScene::kPage;
  args.keys.n_kv_heads = 1;
  args.keys.head_dim = static_cast<int32_t>(s.dim);
  args.round_to = s.dtype;
  int64_t first = 0;
  for (const int64_t count : steps) {
    std::vector<int32_t> positions(static_cast<size_t>(count)), places;
    std::iota(positions.begin(), positions.end(), static_cast<int32_t>(first));
    for (const int32_t position : positions) places.push_back(slot_of(position));
    const auto begin = keys.begin() + first * s.dim;
    const Tensor k =
        put(backend, std::vector<float>(begin, begin + count * s.dim), activation, {count, s.dim});
    const Tensor at = tensor_of(backend, positions, {count});
    const Tensor to = tensor_of(backend, places, {count});
    const Tensor indptr =
        tensor_of(backend, std::vector<int32_t>{0, static_cast<int32_t>(count)}, {2});
    const Tensor context =
        tensor_of(backend, std::vector<int32_t>{static_cast<int32_t>(first + count)}, {1});
    args.k = k.view();
    args.batch = {at.view(), to.view(), indptr.view(), pages.view(), context.view()};
    backend.append_pooled(args);
    first += count;
  }
  const std::vector<float> stored = get(backend, pool.view());
  std::vector<float> all;
  for (int64_t position = 0; position < s.tokens; ++position) {
    const auto row = stored.begin() + slot_of(position) * s.dim;
    all.insert(all.end(), row, row + s.dim);
  }
  return all;
}

}  // namespace fp8kv::test
