#include "model/weights/place_tensor.h"

#include <array>

#include "base/error.h"
#include "core/model/tensor_roles.h"
#include "model/weights/place_block.h"
#include "model/weights/place_expert.h"
#include "model/weights/place_shared_row.h"

namespace fp8kv {
namespace {

// Places a norm of latent attention, which has an eps of its own.
void into_latent(const Placing& tensor, Norm& norm) {
  tensor.into(norm);
  norm.eps = static_cast<float>(tensor.config.latent->norm_eps);
}

// Places the norm of a block's output.
void into_post(const Placing& tensor, std::optional<Norm>& norm) {
  tensor.into(norm);
  const double eps = tensor.config.post_norm_eps;
  if (eps > 0) norm->eps = static_cast<float>(eps);
}

// Places the weights of a norm that multiplies before it divides.
void into(const Placing& tensor, std::optional<ColumnFactors>& factors) {
  factors = {tensor.view, tensor.config.block.norm_plus_one ? 1.0f : 0.0f};
}

// Places the norm of a state's output, whose weights are always stored as they are.
void into_state(const Placing& tensor, Norm& norm) {
  tensor.into(norm);
  norm.weight_offset = 0.0f;
  const double eps = tensor.config.recurrence->norm_eps;
  if (eps > 0) norm.eps = static_cast<float>(eps);
}

QkNorms& qk_norms_of(const Placing& tensor, LayerWeights& layer) {
  if (!layer.attn.norms) layer.attn.norms.emplace();
  layer.attn.norms->whole = tensor.config.block.qk_norm == QkNorm::whole;
  return *layer.attn.norms;
}

NormsBeside& beside_of(LayerWeights& layer) {
  LayerExperts& experts = experts_of(layer);
  if (!experts.beside) experts.beside.emplace();
  return *experts.beside;
}

LatentWeights& latent_of(LayerWeights& layer) {
  if (!layer.latent) layer.latent.emplace();
  return *layer.latent;
}

IndexerWeights& indexer_of(LayerWeights& layer) {
  if (!layer.indexer) layer.indexer.emplace();
  return *layer.indexer;
}

// Places a norm of an indexer. It is a LayerNorm in DSA, and where each token's key is normed.
void into_indexer(const Placing& tensor, Norm& norm) {
  tensor.into(norm);
  if (!tensor.config.indexer->is_dsa() && !tensor.config.indexer->norms_tokens) return;
  norm.kind = NormKind::layer;
  norm.eps = static_cast<float>(tensor.config.indexer->norm_eps);
}

std::array<Linear, 3>& shared_of(LayerWeights& layer) {
  LayerExperts& experts = experts_of(layer);
  if (!experts.shared) experts.shared.emplace();
  return *experts.shared;
}

StreamWeights& streams_of(LayerWeights& layer) {
  if (!layer.streams) layer.streams.emplace();
  return *layer.streams;
}

// Places a norm with weights of its own for each stream.
void into_streams(const Placing& tensor, Norm& norm) {
  tensor.into(norm);
  const int64_t dim = tensor.config.dim;
  norm.weight = {tensor.view.data, tensor.view.dtype,
                 Shape{tensor.view.shape.elements() / dim, dim}};
}

HyperWeights& made(std::optional<HyperWeights>& hyper) {
  return hyper ? *hyper : hyper.emplace();
}

AttnResWeights& attn_res_of(std::optional<AttnResWeights>& weights) {
  return weights ? *weights : weights.emplace();
}

NgramWeights& ngrams_of(LayerWeights& layer) {
  return layer.ngrams ? *layer.ngrams : layer.ngrams.emplace();
}

LaurelWeights& laurel_of(LayerWeights& layer) {
  if (!layer.laurel) layer.laurel.emplace();
  return *layer.laurel;
}

StateWeights& state_of(LayerWeights& layer) {
  if (!layer.state) layer.state.emplace();
  return *layer.state;
}

void place_state(TensorRole role, const Placing& tensor, LayerWeights& layer) {
  StateWeights& state = state_of(layer);
  switch (role) {
    case TensorRole::state_q:
      return tensor.into(state.q);
    case TensorRole::state_k:
      return tensor.into(state.k);
    case TensorRole::state_v:
      return tensor.into(state.v);
    case TensorRole::state_gate:
      return tensor.into(state.gate);
    case TensorRole::state_step:
      return tensor.into(state.step);
    case TensorRole::state_gate_down:
      return tensor.into(state.gate_down);
    case TensorRole::state_step_down:
      return tensor.into(state.step_down);
    case TensorRole::state_strength:
      return tensor.into(state.strength);
    case TensorRole::conv_q:
      return tensor.into(state.conv_q);
    case TensorRole::conv_k:
      return tensor.into(state.conv_k);
    case TensorRole::conv_v:
      return tensor.into(state.conv_v);
    case TensorRole::state_decay:
      state.decay = tensor.view;
      return;
    case TensorRole::state_step_bias:
      state.step_bias = tensor.view;
      return;
    case TensorRole::state_skip:
      state.skip = tensor.view;
      return;
    case TensorRole::state_norm:
      return into_state(tensor, state.norm.emplace());
    case TensorRole::state_step_norm:
      return tensor.into(state.step_norm);
    case TensorRole::state_k_norm:
      return tensor.into(state.k_norm);
    case TensorRole::state_q_norm:
      return tensor.into(state.q_norm);
    case TensorRole::state_out:
      return tensor.into(state.out);
    default:
      assertion_failed("a role of a state", __FILE__, __LINE__);
  }
}

DistanceWeights& distance_of(LayerWeights& layer) {
  return layer.distance ? *layer.distance : layer.distance.emplace();
}

ShortConvWeights& convs_of(LayerWeights& layer) {
  return layer.short_convs ? *layer.short_convs : layer.short_convs.emplace();
}

LayerInput& input_of(LayerWeights& layer) {
  if (!layer.input) layer.input.emplace();
  return *layer.input;
}

}  // namespace

void place_hyper(TensorRole role, const Placing& tensor, std::optional<HyperWeights>& to) {
  HyperWeights& hyper = made(to);
  switch (role) {
    case TensorRole::hyper_attn:
    case TensorRole::hyper_ffn:
    case TensorRole::hyper_head:
      return tensor.into(hyper.product);
    case TensorRole::hyper_attn_base:
    case TensorRole::hyper_ffn_base:
    case TensorRole::hyper_head_base:
      hyper.base = tensor.view;
      return;
    case TensorRole::hyper_attn_scale:
    case TensorRole::hyper_ffn_scale:
    case TensorRole::hyper_head_scale:
      hyper.scale = tensor.view;
      return;
    case TensorRole::hyper_attn_norm:
    case TensorRole::hyper_ffn_norm:
    case TensorRole::hyper_head_norm:
      return into_streams(tensor, hyper.norm.emplace());
    case TensorRole::hyper_attn_down:
    case TensorRole::hyper_ffn_down:
    case TensorRole::hyper_head_down:
      return tensor.into(hyper.down);
    case TensorRole::hyper_attn_up:
    case TensorRole::hyper_ffn_up:
    case TensorRole::hyper_head_up:
      return tensor.into(hyper.up);
    default:
      assertion_failed("a role of a hyper-connection", __FILE__, __LINE__);
  }
}

void place(TensorRole role, const Placing& tensor, LayerWeights& layer) {
  if (place_block(role, tensor, layer)) return;
  if (role_row(role).part == RolePart::state) {
    return place_state(role, tensor, layer);
  }
  if (place_shared_row(role, tensor, layer)) return;
  switch (role) {
    case TensorRole::attn_norm:
      return tensor.into(layer.attn_norm);
    case TensorRole::q:
      return tensor.into(layer.attn.q);
    case TensorRole::k:
      return tensor.into(layer.attn.k);
    case TensorRole::v:
      return tensor.into(layer.attn.v);
    case TensorRole::k_conv:
      convs_of(layer).k = tensor.view;
      return;
    case TensorRole::v_conv:
      convs_of(layer).v = tensor.view;
      return;
    case TensorRole::attn_conv:
      convs_of(layer).attn = tensor.view;
      return;
    case TensorRole::ffn_conv:
      convs_of(layer).ffn = tensor.view;
      return;
    case TensorRole::distance:
      return tensor.into(distance_of(layer).states);
    case TensorRole::distance_bank:
      distance_of(layer).bank = tensor.view;
      return;
    case TensorRole::attn_gate:
      return tensor.into(layer.attn_gate);
    case TensorRole::q_down:
      return tensor.into(latent_of(layer).q_down);
    case TensorRole::q_down_norm:
      return into_latent(tensor, latent_of(layer).q_down_norm.emplace());
    case TensorRole::latent:
      return tensor.into(latent_of(layer).latent);
    case TensorRole::k_rope:
      return tensor.into(latent_of(layer).k_rope);
    case TensorRole::latent_norm:
      return into_latent(tensor, latent_of(layer).norm);
    case TensorRole::k_up:
      latent_of(layer).k_up = tensor.view;
      return;
    case TensorRole::v_up:
      latent_of(layer).v_up = {
          tensor.view.data, tensor.view.dtype,
          Shape{tensor.config.n_heads, tensor.config.latent->v_dim, tensor.config.latent->rank}};
      return;
    case TensorRole::q_norm:
      return tensor.into(qk_norms_of(tensor, layer).q);
    case TensorRole::k_norm:
      return tensor.into(qk_norms_of(tensor, layer).k);
    case TensorRole::sinks:
      layer.sinks = tensor.view;
      return;
    case TensorRole::index_q:
      return tensor.into(indexer_of(layer).q);
    case TensorRole::index_k:
      return tensor.into(indexer_of(layer).k);
    case TensorRole::index_q_norm:
      return into_indexer(tensor, indexer_of(layer).q_norm.emplace());
    case TensorRole::index_norm:
      return into_indexer(tensor, indexer_of(layer).norm);
    case TensorRole::index_weights:
      return tensor.into(indexer_of(layer).heads.emplace());
    case TensorRole::index_gate:
      return tensor.into(indexer_of(layer).gate);
    case TensorRole::index_bias:
      indexer_of(layer).bias = tensor.view;
      return;
    case TensorRole::o:
      return tensor.into(layer.o);
    case TensorRole::attn_post_norm:
      return into_post(tensor, layer.attn_post_norm);
    case TensorRole::ffn_norm:
      return tensor.into(layer.ffn_norm);
    case TensorRole::gate:
      return tensor.into(layer.gate);
    case TensorRole::up:
      return tensor.into(layer.up);
    case TensorRole::down:
      return tensor.into(layer.down);
    case TensorRole::ffn_post_norm:
      if (tensor.config.block.ffn_post_weighs_first) return into(tensor, layer.ffn_post_factors);
      return into_post(tensor, layer.ffn_post_norm);
    case TensorRole::stream_norm:
      return tensor.into(streams_of(layer).norm);
    case TensorRole::stream_router:
      return tensor.into(streams_of(layer).router);
    case TensorRole::stream_predict:
      return tensor.into(streams_of(layer).predict);
    case TensorRole::stream_correct:
      return tensor.into(streams_of(layer).correct);
    case TensorRole::stream_scale:
      streams_of(layer).scale = tensor.view;
      return;
    case TensorRole::attn_res_norm:
      return tensor.into(attn_res_of(layer.attn_res).norm);
    case TensorRole::attn_res:
      return tensor.into(attn_res_of(layer.attn_res).product);
    case TensorRole::ffn_res_norm:
      return tensor.into(attn_res_of(layer.ffn_res).norm);
    case TensorRole::ffn_res:
      return tensor.into(attn_res_of(layer.ffn_res).product);
    case TensorRole::hyper_attn:
    case TensorRole::hyper_attn_base:
    case TensorRole::hyper_attn_scale:
    case TensorRole::hyper_attn_norm:
    case TensorRole::hyper_attn_down:
    case TensorRole::hyper_attn_up:
      return place_hyper(role, tensor, layer.attn_hyper);
    case TensorRole::hyper_ffn:
    case TensorRole::hyper_ffn_base:
    case TensorRole::hyper_ffn_scale:
    case TensorRole::hyper_ffn_norm:
    case TensorRole::hyper_ffn_down:
    case TensorRole::hyper_ffn_up:
      return place_hyper(role, tensor, layer.ffn_hyper);
    case TensorRole::ngram_key:
      return tensor.into(ngrams_of(layer).key);
    case TensorRole::ngram_value:
      return tensor.into(ngrams_of(layer).value);
    case TensorRole::ngram_key_norm:
      return into_streams(tensor, ngrams_of(layer).key_norm);
    case TensorRole::ngram_query_norm:
      return into_streams(tensor, ngrams_of(layer).query_norm);
    case TensorRole::ngram_conv_norm:
      return into_streams(tensor, ngrams_of(layer).conv_norm);
    case TensorRole::ngram_conv:
      return tensor.into(ngrams_of(layer).conv);
    case TensorRole::laurel_down:
      return tensor.into(laurel_of(layer).down);
    case TensorRole::laurel_up:
      return tensor.into(laurel_of(layer).up);
    case TensorRole::laurel_norm:
      return tensor.into(laurel_of(layer).norm);
    case TensorRole::input_gate:
      return tensor.into(input_of(layer).gate);
    case TensorRole::input_out:
      return tensor.into(input_of(layer).out);
    case TensorRole::input_post_norm:
      return tensor.into(input_of(layer).post_norm);
    case TensorRole::router:
      return tensor.into(experts_of(layer).router);
    case TensorRole::router_norm:
      return tensor.into(experts_of(layer).router_norm);
    case TensorRole::choice_bias:
      experts_of(layer).terms.choice_bias = tensor.view;
      return;
    case TensorRole::expert_factors:
      experts_of(layer).terms.factors = tensor.view;
      return;
    case TensorRole::experts_norm:
      return tensor.into(beside_of(layer).experts);
    case TensorRole::experts_post_norm:
      return tensor.into(beside_of(layer).experts_post);
    case TensorRole::dense_post_norm:
      return tensor.into(beside_of(layer).dense_post);
    case TensorRole::experts_in:
      return tensor.into(experts_of(layer).in);
    case TensorRole::experts_out:
      return tensor.into(experts_of(layer).out);
    case TensorRole::experts_in_norm:
      return tensor.into(experts_of(layer).in_norm);
    case TensorRole::experts_sum_norm:
      return tensor.into(experts_of(layer).sum_norm);
    case TensorRole::each_expert_norm:
      return into(tensor, experts_of(layer).each_factors);
    case TensorRole::shared_gate:
      return tensor.into(shared_of(layer)[0]);
    case TensorRole::shared_up:
      return tensor.into(shared_of(layer)[1]);
    case TensorRole::shared_down:
      return tensor.into(shared_of(layer)[2]);
    case TensorRole::shared_router:
      return tensor.into(experts_of(layer).shared_router);
    default:
      assertion_failed("a role of a layer", __FILE__, __LINE__);
  }
}

}  // namespace fp8kv
