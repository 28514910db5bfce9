#include "model/parts/sparse/indexer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "model/parts/projections.h"

namespace fp8kv {
namespace {

// Rows whose scores are in memory at a time: 16 MiB of them, and at least 16 rows.
int64_t scored_rows(int64_t max_rows, int64_t max_positions) {
  constexpr int64_t kScores = int64_t{1} << 22, kLeastRows = 16;
  return std::min(max_rows, std::max(kLeastRows, kScores / max_positions));
}

}  // namespace

IndexerForward::IndexerForward(ForwardMemory& memory, const ModelConfig& config,
                               int64_t max_positions)
    : backend_(memory.backend()), indexer_(*config.indexer), rope_dim_(config.latent->rope_dim) {
  q_ = memory.make(memory.activation(),
                   Shape{memory.max_rows(), indexer_.n_heads, indexer_.head_dim});
  k_ = memory.rows(indexer_.head_dim);
  rotated_ = memory.rows(rope_dim_);
  rest_ = memory.rows(indexer_.head_dim - rope_dim_);
  weights_ = memory.rows(DType::f32, indexer_.n_heads);
  scores_ =
      memory.make(DType::f32, Shape{scored_rows(memory.max_rows(), max_positions), max_positions});
  if (!indexer_.f32_weights || memory.activation() == DType::f32) return;
  wide_ = memory.rows(DType::f32, config.dim);
  std::vector<int32_t> rows(static_cast<size_t>(memory.max_rows()));
  std::iota(rows.begin(), rows.end(), 0);
  all_rows_ = memory.make(
      {reinterpret_cast<const std::byte*>(rows.data()), DType::i32, Shape{memory.max_rows()}});
}

void IndexerForward::run(const IndexerWeights& weights, const IndexerRows& rows,
                         const RopeAppend& rotation, const TokenChoice& choice) {
  const int64_t n = rows.x.shape[0], rest = indexer_.head_dim - rope_dim_;
  const TensorView q = q_.first(n), k = k_.first(n), of_heads = weights_.first(n);
  backend_.linear(
      rows.q_vector,
      std::array{project_to(weights.q, reshaped(q, {n, indexer_.n_heads * indexer_.head_dim}))});
  backend_.linear(rows.x, std::array{project_to(weights.k, k)});
  backend_.norm(k, weights.norm, k);
  ConstTensorView x = rows.x;
  if (wide_.view().shape.rank() > 0) {
    // Looking up row i for row i gives the same numbers in F32.
    backend_.embed(rows.x, all_rows_.first(n), wide_.first(n));
    x = wide_.first(n);
  }
  backend_.linear(x, std::array{project_to(weights.heads, of_heads)});
  backend_.scale(of_heads, 1.0f / std::sqrt(static_cast<float>(indexer_.n_heads)), 0.0f);

  RopeAppend append = rotation;
  append.q = q;
  append.k = reshaped(rotated_.first(n), {n, 1, rope_dim_});
  append.v = reshaped(rest_.first(n), {n, 1, rest});
  append.kv = choice.keys;
  append.magnitudes = {};
  append.q_rope = {};
  append.pairs = indexer_.pairs;
  const TensorView key = reshaped(k, {n, 1, indexer_.head_dim});
  backend_.copy_columns({key, 0}, {append.k, 0}, rope_dim_);
  backend_.copy_columns({key, rope_dim_}, {append.v, 0}, rest);
  backend_.rope_append(append);
  backend_.choose_tokens({.q = q,
                          .weights = of_heads,
                          .keys = choice.keys,
                          .scale = 1.0f / std::sqrt(static_cast<float>(indexer_.head_dim)),
                          .scores = scores_.view()},
                         rotation.batch, choice.chosen);
}

}  // namespace fp8kv
