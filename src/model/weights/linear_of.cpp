#include "model/weights/linear_of.h"

namespace fp8kv {
namespace {

const Linear* get(const std::optional<Linear>& linear) {
  return linear ? &*linear : nullptr;
}

const Linear* of_state(const StateWeights& state, TensorRole role) {
  switch (role) {
    case TensorRole::state_q:
      return &state.q;
    case TensorRole::state_k:
      return &state.k;
    case TensorRole::state_v:
      return &state.v;
    case TensorRole::state_gate:
      return &state.gate;
    case TensorRole::state_step:
      return &state.step;
    case TensorRole::state_gate_down:
      return get(state.gate_down);
    case TensorRole::state_step_down:
      return get(state.step_down);
    case TensorRole::state_strength:
      return get(state.strength);
    case TensorRole::state_out:
      return &state.out;
    default:
      return nullptr;
  }
}

const Linear* of_latent(const LatentWeights& latent, TensorRole role) {
  switch (role) {
    case TensorRole::q_down:
      return get(latent.q_down);
    case TensorRole::latent:
      return &latent.latent;
    case TensorRole::k_rope:
      return &latent.k_rope;
    default:
      return nullptr;
  }
}

const Linear* of_shared_row(const SharedRowWeights& row, TensorRole role) {
  switch (role) {
    case TensorRole::q_down:
      return &row.q_down;
    case TensorRole::pool_rows:
      return row.pool ? &row.pool->rows : nullptr;
    case TensorRole::pool_gate:
      return row.pool ? &row.pool->gate : nullptr;
    default:
      return nullptr;
  }
}

const Linear* of_block(const SharedBlockWeights& block, TensorRole role) {
  switch (role) {
    case TensorRole::q_lora_down:
      return block.q ? &block.q->down : nullptr;
    case TensorRole::q_lora_up:
      return block.q ? &block.q->up : nullptr;
    case TensorRole::k_lora_down:
      return block.k ? &block.k->down : nullptr;
    case TensorRole::k_lora_up:
      return block.k ? &block.k->up : nullptr;
    case TensorRole::v_lora_down:
      return block.v ? &block.v->down : nullptr;
    case TensorRole::v_lora_up:
      return block.v ? &block.v->up : nullptr;
    case TensorRole::ffn_lora_down:
      return &block.ffn_down;
    case TensorRole::gate_lora_up:
      return &block.gate_up;
    case TensorRole::up_lora_up:
      return &block.up_up;
    case TensorRole::block_out:
      return &block.out;
    default:
      return nullptr;
  }
}

const Linear* of_indexer(const IndexerWeights& indexer, TensorRole role) {
  switch (role) {
    case TensorRole::index_q:
      return &indexer.q;
    case TensorRole::index_k:
      return &indexer.k;
    case TensorRole::index_weights:
      return indexer.heads ? &*indexer.heads : nullptr;
    case TensorRole::index_gate:
      return get(indexer.gate);
    default:
      return nullptr;
  }
}

const Linear* of_experts(const LayerExperts& experts, TensorRole role) {
  switch (role) {
    case TensorRole::router:
      return &experts.router;
    case TensorRole::experts_in:
      return get(experts.in);
    case TensorRole::experts_out:
      return get(experts.out);
    case TensorRole::shared_gate:
      return experts.shared ? &(*experts.shared)[0] : nullptr;
    case TensorRole::shared_up:
      return experts.shared ? &(*experts.shared)[1] : nullptr;
    case TensorRole::shared_down:
      return experts.shared ? &(*experts.shared)[2] : nullptr;
    case TensorRole::shared_router:
      return get(experts.shared_router);
    default:
      return nullptr;
  }
}

const Linear* of_layer(const LayerWeights& layer, TensorRole role) {
  switch (role) {
    case TensorRole::q:
      return &layer.attn.q;
    case TensorRole::k:
      return &layer.attn.k;
    case TensorRole::v:
      return &layer.attn.v;
    case TensorRole::attn_gate:
      return get(layer.attn_gate);
    case TensorRole::o:
      return &layer.o;
    case TensorRole::distance:
      return layer.distance ? &layer.distance->states : nullptr;
    case TensorRole::gate:
      return get(layer.gate);
    case TensorRole::up:
      return &layer.up;
    case TensorRole::down:
      return &layer.down;
    case TensorRole::input_gate:
      return layer.input ? &layer.input->gate : nullptr;
    case TensorRole::input_out:
      return layer.input ? &layer.input->out : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace

const Linear* linear_of(const LayerWeights& layer, TensorRole role) {
  if (const Linear* found = of_layer(layer, role)) return found;
  const Linear* found = layer.state ? of_state(*layer.state, role) : nullptr;
  if (found == nullptr && layer.latent) found = of_latent(*layer.latent, role);
  if (found == nullptr && layer.shared_row) found = of_shared_row(*layer.shared_row, role);
  if (found == nullptr && layer.shared_block) found = of_block(*layer.shared_block, role);
  if (found == nullptr && layer.indexer) found = of_indexer(*layer.indexer, role);
  if (found == nullptr && layer.experts) found = of_experts(*layer.experts, role);
  return found;
}

}  // namespace fp8kv
