#include "model/parts/sparse/indexer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/numbers/host_view.h"
#include "model/parts/projections.h"

namespace fp8kv {
namespace {

// Rows whose scores are in memory at a time: 16 MiB of them, and at least 16 rows.
int64_t scored_rows(int64_t max_rows, int64_t width) {
  constexpr int64_t kScores = int64_t{1} << 22, kLeastRows = 16;
  return std::min(max_rows, std::max(kLeastRows, kScores / width));
}

// Scores of a row: of each token, or of each block for each head.
int64_t scores_of_row(const IndexerConfig& indexer, int64_t max_positions) {
  const int64_t blocks = (max_positions + indexer.block - 1) / indexer.block;
  return indexer.by_kv_head ? indexer.n_heads * blocks : blocks;
}

}  // namespace

IndexerForward::IndexerForward(ForwardMemory& memory, const ModelConfig& config,
                               int64_t max_positions)
    : backend_(memory.backend()), indexer_(*config.indexer) {
  q_ = memory.make(memory.activation(),
                   Shape{memory.max_rows(), indexer_.n_heads, indexer_.head_dim});
  k_ = memory.rows(indexer_.head_dim);
  if (indexer_.weighted) {
    tokens_ = memory.rows(indexer_.parts() * indexer_.head_dim);
    gates_ = memory.rows(indexer_.parts() * indexer_.head_dim);
  }
  if (!indexer_.norms_tokens) {
    rotated_ = memory.rows(indexer_.rope_dim);
    rest_ = memory.rows(indexer_.head_dim - indexer_.rope_dim);
  }
  if (indexer_.rotates_last) {
    turned_ = memory.make(memory.activation(),
                          Shape{memory.max_rows(), indexer_.n_heads, indexer_.head_dim});
  }
  const int64_t width = scores_of_row(indexer_, max_positions);
  scores_ = memory.make(DType::f32, Shape{scored_rows(memory.max_rows(), width), width});
  if (indexer_.by_kv_head) return;
  if (!indexer_.weighs_heads()) {
    const std::vector<float> ones(static_cast<size_t>(memory.max_rows() * indexer_.n_heads), 1.0f);
    weights_ = memory.make(host_view(ones, Shape{memory.max_rows(), indexer_.n_heads}));
    return;
  }
  weights_ = memory.rows(DType::f32, indexer_.n_heads);
  if (indexer_.f32_weights) wide_.emplace(memory, config.dim);
}

// How much each head counts.   [n, n_heads] f32
ConstTensorView IndexerForward::weights_of(const Linear& heads, const ConstTensorView& rows) {
  const TensorView of_heads = weights_.first(rows.shape[0]);
  backend_.linear(wide_ ? wide_->widened(rows) : rows, std::array{project_to(heads, of_heads)});
  backend_.scale(of_heads, 1.0f / std::sqrt(static_cast<float>(indexer_.n_heads)), 0.0f);
  return of_heads;
}

void IndexerForward::run(const IndexerWeights& weights, const IndexerRows& rows,
                         const RopeAppend& rotation, const TokenChoice& choice) {
  const int64_t n = rows.x.shape[0], heads = indexer_.n_heads, size = indexer_.head_dim;
  const TensorView q = q_.first(n);
  backend_.linear(rows.q_vector, std::array{project_to(weights.q, reshaped(q, {n, heads * size}))});
  if (indexer_.weighted) {
    pool_keys(weights, rows);
  } else {
    backend_.linear(rows.x, std::array{project_to(weights.k, k_.first(n))});
  }
  if (weights.q_norm) {
    const TensorView each = reshaped(q, {n * heads, size});
    backend_.norm(each, *weights.q_norm, each);
  }
  TokenScores scores{.q = q,
                     .keys = choice.keys,
                     .scale = 1.0f / std::sqrt(static_cast<float>(size)),
                     .block = indexer_.block,
                     .pooled = indexer_.pooled,
                     .local_blocks = indexer_.local_blocks,
                     .scores = scores_.view()};
  if (weights.heads) scores.weights = weights_of(*weights.heads, rows.x);
  if (!indexer_.by_kv_head && !indexer_.weighs_heads()) scores.weights = weights_.first(n);
  if (indexer_.norms_tokens) {
    append_unrotated(scores, rotation);
  } else if (indexer_.weighted) {
    RopeAppend delayed = rotation;
    delayed.q_rope = rotation.rope;
    delayed.rope = rows.pool_rope;
    append(weights, scores, delayed);
  } else if (indexer_.pooled) {
    append_pooled(weights, scores, rotation);
  } else {
    append(weights, scores, rotation);
  }
  backend_.choose_tokens(scores, rows.batch, choice.chosen);
}

// Norms, rotates and stores the keys, and rotates Q.
void IndexerForward::append(const IndexerWeights& weights, TokenScores& scores,
                            const RopeAppend& rotation) {
  const int64_t n = scores.q.shape[0], size = indexer_.head_dim;
  const int64_t rest = size - indexer_.rope_dim;
  const TensorView q = q_.first(n), k = k_.first(n);
  backend_.norm(k, weights.norm, k);
  RopeAppend append = rotation;
  append.q = q;
  append.k = reshaped(rotated_.first(n), {n, 1, indexer_.rope_dim});
  append.v = reshaped(rest_.first(n), {n, 1, rest});
  append.kv = scores.keys;
  append.magnitudes = {};
  if (!indexer_.weighted) append.q_rope = {};
  append.pairs = indexer_.pairs;
  const TensorView key = reshaped(k, {n, 1, size});
  const int64_t rotated = indexer_.rotates_last ? rest : 0;
  backend_.copy_columns({key, rotated}, {append.k, 0}, indexer_.rope_dim);
  backend_.copy_columns({key, indexer_.rotates_last ? 0 : indexer_.rope_dim}, {append.v, 0}, rest);
  if (indexer_.rotates_last) {
    // Q gets the order of the keys, where what rotates comes first.
    append.q = turned_.first(n);
    scores.q = append.q;
    backend_.copy_columns({q, rest}, {append.q, 0}, indexer_.rope_dim);
    backend_.copy_columns({q, 0}, {append.q, indexer_.rope_dim}, rest);
  }
  backend_.rope_append(append);
}

// Stores the keys as they are.   rotation: none
void IndexerForward::append_unrotated(const TokenScores& scores, const RopeAppend& rotation) {
  const int64_t n = scores.q.shape[0];
  const TensorView k = k_.first(n);
  RopeAppend append = rotation;
  append.q = q_.first(n);
  append.k = {k.data, k.dtype, Shape{n, 1, 0}};
  append.v = reshaped(k, {n, 1, indexer_.head_dim});
  append.kv = scores.keys;
  append.magnitudes = {};
  backend_.rope_append(append);
}

// Makes the keys of blocks that end. Keys of other tokens are zeros, which no row looks at.
void IndexerForward::pool_keys(const IndexerWeights& weights, const IndexerRows& rows) {
  const int64_t n = rows.x.shape[0];
  backend_.linear(rows.x, std::array{project_to(weights.k, tokens_.first(n)),
                                     project_to(weights.gate.value(), gates_.first(n))});
  if (indexer_.norms_tokens) backend_.norm(tokens_.first(n), weights.norm, tokens_.first(n));
  backend_.pool_tokens({.rows = tokens_.first(n),
                        .gates = gates_.first(n),
                        .bias = weights.bias.value(),
                        .block = indexer_.block,
                        .parts = indexer_.parts(),
                        .state = rows.pool_state},
                       rows.batch, k_.first(n));
}

// Stores the keys, those of whole blocks pooled, and rotates Q.
void IndexerForward::append_pooled(const IndexerWeights& weights, const TokenScores& scores,
                                   const RopeAppend& rotation) {
  const int64_t n = scores.q.shape[0];
  const PagedKv& keys = scores.keys;
  const auto no_heads = [&](int64_t size) {
    return TensorView{k_.view().data, k_.view().dtype, Shape{n, 0, size}};
  };
  RopeAppend turn = rotation;
  turn.q = q_.first(n);
  turn.k = no_heads(keys.head_dim - keys.v_in_k);
  turn.v = no_heads(keys.v_dim());
  turn.kv = keys;
  turn.magnitudes = {};
  turn.q_rope = {};
  backend_.rope_append(turn);
  backend_.append_pooled({.k = k_.first(n),
                          .block = indexer_.block,
                          .norm = weights.norm,
                          .rope = rotation.rope,
                          .batch = rotation.batch,
                          .keys = keys,
                          .round_to = rotation.round_to});
}

}  // namespace fp8kv
