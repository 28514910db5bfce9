#include "model/parts/rope_tables.h"

#include "core/numbers/host_view.h"
#include "model/parts/rope.h"

namespace fp8kv {
namespace {

Tensor to_backend(ForwardMemory& memory, const std::vector<float>& rows, int64_t n_rows) {
  return memory.make(host_view(rows, Shape{n_rows, static_cast<int64_t>(rows.size()) / n_rows}));
}

}  // namespace

RopeTables::RopeTables(ForwardMemory& memory, const ModelConfig& config, int64_t max_positions)
    : backend_(memory.backend()), round_to_(config.dtype) {
  for (size_t i = 0; i < config.ropes.size(); ++i) {
    const int64_t size = config.rope_head_dim(static_cast<int32_t>(i));
    tables_.push_back(size == 0 ? Table() : make(memory, config.ropes[i], size, max_positions));
  }
  none_ = make(memory, {.rotary_dim = 2}, 2, 1);
  no_positions_ = memory.make(DType::i32, Shape{memory.max_rows()});
}

RopeTables::Table RopeTables::make(ForwardMemory& memory, const RopeConfig& rope, int64_t head_dim,
                                   int64_t positions) {
  Table table{to_backend(memory, rope_table(rope, head_dim, positions, rope.k_factor), positions),
              {},
              {},
              rope.pairs};
  const bool grows = rope.q_growth != 0.0;
  const bool whole = rotary_dim(rope, head_dim) == head_dim;
  if ((grows && whole) || rope.k_factor != 1.0) {
    table.q_rows = to_backend(memory, q_rope_table(rope, head_dim, positions), positions);
  }
  const bool reached = static_cast<double>(positions) + rope.q_growth_from > rope.original_context;
  if (grows && !whole && reached) {
    RopeConfig still = rope;
    still.turns = false;
    still.rotary_dim = 0;
    still.attention_factor = 1.0;
    table.q_growth = to_backend(memory, q_rope_table(still, head_dim, positions), positions);
  }
  return table;
}

RopeAppend RopeTables::rotation(int32_t rope, const AttentionInputs& inputs, const Batch& batch,
                                const PagedKv& kv,
                                const std::optional<TensorView>& magnitudes) const {
  const Table& table = rope < 0 ? none_ : tables_[static_cast<size_t>(rope)];
  RopeAppend args{.q = inputs.q,
                  .k = inputs.k,
                  .v = inputs.v,
                  .rope = table.rows.view(),
                  .batch = batch,
                  .kv = kv,
                  .round_to = round_to_,
                  .magnitudes = magnitudes,
                  .pairs = table.pairs};
  if (table.q_rows) args.q_rope = table.q_rows->view();
  if (rope < 0) {
    args.batch.positions = {no_positions_.view().data, DType::i32, Shape{inputs.q.shape[0]}};
  }
  return args;
}

void RopeTables::grow_q(int32_t rope, const RopeAppend& args) const {
  if (rope < 0 || !tables_[static_cast<size_t>(rope)].q_growth) return;
  RopeAppend growth = rotate_alone(args.q, args);
  growth.rope = tables_[static_cast<size_t>(rope)].q_growth->view();
  growth.q_rope = {};
  growth.pairs = RopePairs::halves;
  backend_.rope_append(growth);
}

RopeAppend rotate_alone(const TensorView& heads, const RopeAppend& args) {
  const auto none = [&](const TensorView& like) {
    return TensorView{like.data, like.dtype, Shape{heads.shape[0], 0, like.shape[2]}};
  };
  RopeAppend out = args;
  out.q = heads;
  out.k = none(args.k);
  out.v = none(args.v);
  out.magnitudes = {};
  return out;
}

}  // namespace fp8kv
