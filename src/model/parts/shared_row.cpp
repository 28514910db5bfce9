#include "model/parts/shared_row.h"

#include <algorithm>
#include <array>

#include "core/numbers/host_view.h"
#include "model/parts/projections.h"
#include "model/parts/rope.h"
#include "model/parts/rope_tables.h"

namespace fp8kv {
namespace {

// The angles of each position, or those of the position `delay` before it; position 0's before
// that.
Tensor delayed_table(ForwardMemory& memory, const RopeConfig& rope, int64_t positions,
                     int64_t delay) {
  const std::vector<float> angles = rope_table(rope, rope.rotary_dim, positions, 1.0);
  std::vector<float> delayed(angles.size());
  const int64_t width = rope.rotary_dim;
  for (int64_t position = 0; position < positions; ++position) {
    const int64_t from = std::max<int64_t>(0, position - delay);
    std::copy_n(angles.begin() + from * width, width, delayed.begin() + position * width);
  }
  return memory.make(host_view(delayed, Shape{positions, width}));
}

TensorView one_head(const TensorView& rows) {
  return reshaped(rows, {rows.shape[0], 1, rows.shape[1]});
}

}  // namespace

SharedRowForward::SharedRowForward(ForwardMemory& memory, const ModelConfig& config,
                                   int64_t max_positions)
    : backend_(memory.backend()),
      config_(config),
      row_(*config.shared_row),
      head_dim_(config.layer(0).k_head_dim) {
  for (const RopeConfig& rope : config.ropes) {
    RopeConfig backwards = rope;
    backwards.backwards = true;
    back_.push_back(delayed_table(memory, backwards, max_positions, 0));
  }
  int64_t pooled = 0;
  for (int64_t i = 0; i < config.n_layers(); ++i) {
    const LayerDescription& layer = config.layer(i);
    if (layer.pool == 0) continue;
    pooled = std::max(pooled, (layer.pool_overlaps ? 2 : 1) * head_dim_);
    const int32_t rope = config.layer_ropes[static_cast<size_t>(i)];
    const std::pair key{rope, layer.pool};
    if (pool_ropes_.contains(key)) continue;
    pool_ropes_[key] = delayed_table(memory, config.ropes[static_cast<size_t>(rope)], max_positions,
                                     layer.pool - 1);
  }
  q_down_ = memory.rows(row_.q_rank);
  q_ = memory.rows(config.n_heads * head_dim_);
  k_ = memory.rows(head_dim_);
  down_ = memory.rows(row_.o_groups * row_.o_rank);
  if (pooled == 0) return;
  pool_rows_ = memory.rows(pooled);
  pool_gates_ = memory.rows(pooled);
}

ConstTensorView SharedRowForward::pool_rope(int64_t index) const {
  const int32_t rope = config_.layer_ropes[static_cast<size_t>(index)];
  return pool_ropes_.at({rope, config_.layer(index).pool}).view();
}

// Copies heads [n, any, head_dim] with the elements that rotate, the last ones, in front.
void SharedRowForward::rotated_first(const ConstTensorView& from, const TensorView& to) {
  const int64_t still = head_dim_ - row_.rope_dim;
  backend_.copy_columns({from, still}, {to, 0}, row_.rope_dim);
  backend_.copy_columns({from, 0}, {to, row_.rope_dim}, still);
}

void SharedRowForward::project(int64_t index, const LayerWeights& weights, const ConstTensorView& x,
                               const RopeAppend& args, const TensorView& pool_state) {
  const SharedRowWeights& own = weights.shared_row.value();
  const QkNorms& norms = weights.attn.norms.value();
  const int64_t n = x.shape[0];
  const TensorView q_down = q_down_.first(n), q = q_.first(n), k = k_.first(n);
  backend_.linear(x, std::array{project_to(own.q_down, q_down), project_to(weights.attn.k, k)});
  backend_.norm(q_down, own.q_down_norm, q_down);
  backend_.linear(q_down, std::array{project_to(weights.attn.q, q)});
  const TensorView each = reshaped(q, {n * config_.n_heads, head_dim_});
  backend_.norm(each, norms.q, each);
  backend_.norm(k, norms.k, k);
  rotated_first(reshaped(q, {n, config_.n_heads, head_dim_}), args.q);
  rotated_first(one_head(k), args.k);
  backend_.rope_append(rotate_alone(args.q, args));
  backend_.rope_append(rotate_alone(args.k, args));
  const LayerDescription& layer = config_.layer(index);
  if (layer.pool == 0) return backend_.copy_columns({args.k, 0}, {args.v, 0}, head_dim_);
  RopeAppend turn = rotate_alone(args.v, args);
  turn.rope = pool_rope(index);
  const int64_t parts = layer.pool_overlaps ? 2 : 1;
  const auto tokens = [&](const Tensor& memory) {
    return TensorView{memory.view().data, memory.view().dtype, Shape{n, parts * head_dim_}};
  };
  pool(own.pool.value(), x, turn,
       {.rows = tokens(pool_rows_),
        .gates = tokens(pool_gates_),
        .bias = own.pool->bias,
        .block = layer.pool,
        .parts = parts,
        .state = pool_state});
}

// Computes the rows that pool blocks into turn.q [n, 1, head_dim].
void SharedRowForward::pool(const PoolWeights& weights, const ConstTensorView& x,
                            const RopeAppend& turn, const TokenPools& pools) {
  const int64_t n = x.shape[0];
  const TensorView pooled = k_.first(n);
  const auto memory = [&](const Tensor& own) {
    return TensorView{own.view().data, own.view().dtype, pools.rows.shape};
  };
  backend_.linear(x, std::array{project_to(weights.rows, memory(pool_rows_)),
                                project_to(weights.gate, memory(pool_gates_))});
  backend_.pool_tokens(pools, turn.batch, pooled);
  backend_.norm(pooled, weights.norm, pooled);
  rotated_first(one_head(pooled), turn.q);
  backend_.rope_append(turn);
}

void SharedRowForward::turn_back(int64_t index, const TensorView& attended,
                                 const RopeAppend& args) {
  RopeAppend turn = rotate_alone(attended, args);
  turn.rope = back_[static_cast<size_t>(config_.layer_ropes[static_cast<size_t>(index)])].view();
  backend_.rope_append(turn);
}

TensorView SharedRowForward::output(const SharedRowWeights& weights,
                                    const ConstTensorView& attended) {
  const int64_t n = attended.shape[0], still = head_dim_ - row_.rope_dim;
  const TensorView heads = reshaped(q_.first(n), {n, config_.n_heads, head_dim_});
  backend_.copy_columns({attended, 0}, {heads, still}, row_.rope_dim);
  backend_.copy_columns({attended, row_.rope_dim}, {heads, 0}, still);
  const int64_t of_group = config_.n_heads / row_.o_groups * head_dim_;
  const TensorView down = down_.first(n);
  backend_.linear_heads({reshaped(heads, {n, row_.o_groups, of_group}), 0}, weights.o_down,
                        {reshaped(down, {n, row_.o_groups, row_.o_rank}), 0});
  return down;
}

}  // namespace fp8kv
