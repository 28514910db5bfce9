#include "core/model/tensor_roles.h"

#include <array>

namespace fp8kv {
namespace {

using P = RolePart;
using R = TensorRole;
using U = MatrixUse;

constexpr std::array<RoleRow, kRoleCount> kRoles = {{
    {R::embedding, "embedding", P::embedding, U::none},
    {R::embed_up, "embed_up", P::embedding, U::left_alone},
    {R::positions, "positions", P::embedding, U::none},
    {R::embed_norm, "embed_norm", P::embedding, U::none},
    {R::layer_embedding, "layer_embedding", P::embedding, U::none},
    {R::layer_projection, "layer_projection", P::embedding, U::left_alone},
    {R::layer_projection_norm, "layer_projection_norm", P::embedding, U::none},
    {R::stream_in, "stream_in", P::embedding, U::left_alone},
    {R::hidden_product, "hidden_product", P::embedding, U::left_alone, true},
    {R::hidden_norm, "hidden_norm", P::embedding, U::none, true},
    {R::token_norm, "token_norm", P::embedding, U::none, true},
    {R::ngram_table, "ngram_table", P::cached, U::none},
    {R::ngram_key, "ngram_key", P::cached, U::left_alone},
    {R::ngram_value, "ngram_value", P::cached, U::left_alone},
    {R::ngram_key_norm, "ngram_key_norm", P::cached, U::none},
    {R::ngram_query_norm, "ngram_query_norm", P::cached, U::none},
    {R::ngram_conv_norm, "ngram_conv_norm", P::cached, U::none},
    {R::ngram_conv, "ngram_conv", P::cached, U::none},
    {R::attn_norm, "attn_norm", P::cached, U::none, true},
    {R::stream_norm, "stream_norm", P::cached, U::none, true},
    {R::stream_router, "stream_router", P::cached, U::left_alone, true},
    {R::stream_predict, "stream_predict", P::cached, U::left_alone, true},
    {R::hyper_attn, "hyper_attn", P::cached, U::left_alone, true, true},
    {R::hyper_attn_base, "hyper_attn_base", P::cached, U::none, true, true},
    {R::hyper_attn_scale, "hyper_attn_scale", P::cached, U::none, true, true},
    {R::hyper_attn_norm, "hyper_attn_norm", P::cached, U::none, true},
    {R::hyper_attn_down, "hyper_attn_down", P::cached, U::left_alone, true},
    {R::hyper_attn_up, "hyper_attn_up", P::cached, U::left_alone, true},
    {R::q, "q", P::cached, U::quantised},
    {R::k, "k", P::cached, U::quantised, true},
    {R::v, "v", P::cached, U::quantised, true},
    {R::attn_gate, "attn_gate", P::cached, U::quantised},
    {R::q_down, "q_down", P::cached, U::quantised},
    {R::q_down_norm, "q_down_norm", P::cached, U::none},
    {R::latent, "latent", P::cached, U::quantised, true},
    {R::k_rope, "k_rope", P::cached, U::quantised},
    {R::latent_norm, "latent_norm", P::cached, U::none, true},
    {R::k_up, "k_up", P::cached, U::quantised},
    {R::v_up, "v_up", P::cached, U::quantised},
    {R::q_norm, "q_norm", P::cached, U::none},
    {R::k_norm, "k_norm", P::cached, U::none, true},
    {R::sinks, "sinks", P::attention, U::none, false, true},
    {R::index_q, "index_q", P::attention, U::left_alone},
    {R::index_k, "index_k", P::attention, U::left_alone},
    {R::index_q_norm, "index_q_norm", P::attention, U::none, false, true},
    {R::index_norm, "index_norm", P::attention, U::none, false, true},
    {R::index_weights, "index_weights", P::attention, U::left_alone, false, true},
    {R::o, "o", P::attention, U::quantised},
    {R::state_q, "state_q", P::state, U::quantised},
    {R::state_k, "state_k", P::state, U::quantised},
    {R::state_v, "state_v", P::state, U::quantised},
    {R::state_gate, "state_gate", P::state, U::quantised},
    {R::state_step, "state_step", P::state, U::left_alone},
    {R::state_gate_down, "state_gate_down", P::state, U::left_alone},
    {R::state_step_down, "state_step_down", P::state, U::left_alone},
    {R::state_strength, "state_strength", P::state, U::left_alone},
    {R::conv_q, "conv_q", P::state, U::none},
    {R::conv_k, "conv_k", P::state, U::none},
    {R::conv_v, "conv_v", P::state, U::none},
    {R::state_decay, "state_decay", P::state, U::none, false, true},
    {R::state_step_bias, "state_step_bias", P::state, U::none, false, true},
    {R::state_skip, "state_skip", P::state, U::none, false, true},
    {R::state_norm, "state_norm", P::state, U::none, false, true},
    {R::state_out, "state_out", P::state, U::quantised},
    {R::laurel_down, "laurel_down", P::rest, U::left_alone},
    {R::laurel_up, "laurel_up", P::rest, U::left_alone},
    {R::laurel_norm, "laurel_norm", P::rest, U::none},
    {R::attn_post_norm, "attn_post_norm", P::rest, U::none},
    {R::hyper_ffn, "hyper_ffn", P::rest, U::left_alone, false, true},
    {R::hyper_ffn_base, "hyper_ffn_base", P::rest, U::none, false, true},
    {R::hyper_ffn_scale, "hyper_ffn_scale", P::rest, U::none, false, true},
    {R::hyper_ffn_norm, "hyper_ffn_norm", P::rest, U::none},
    {R::hyper_ffn_down, "hyper_ffn_down", P::rest, U::left_alone},
    {R::hyper_ffn_up, "hyper_ffn_up", P::rest, U::left_alone},
    {R::ffn_norm, "ffn_norm", P::rest, U::none},
    {R::gate, "gate", P::rest, U::quantised},
    {R::up, "up", P::rest, U::quantised},
    {R::xielu_positive, "xielu_positive", P::rest, U::none},
    {R::xielu_negative, "xielu_negative", P::rest, U::none},
    {R::xielu_beta, "xielu_beta", P::rest, U::none},
    {R::xielu_eps, "xielu_eps", P::rest, U::none},
    {R::down, "down", P::rest, U::quantised},
    {R::router_norm, "router_norm", P::rest, U::none},
    {R::router, "router", P::rest, U::left_alone, false, true},
    {R::choice_bias, "choice_bias", P::rest, U::none, false, true},
    {R::expert_factors, "expert_factors", P::rest, U::none},
    {R::experts_norm, "experts_norm", P::rest, U::none},
    {R::experts_post_norm, "experts_post_norm", P::rest, U::none},
    {R::dense_post_norm, "dense_post_norm", P::rest, U::none},
    {R::experts_in, "experts_in", P::rest, U::quantised},
    {R::experts_out, "experts_out", P::rest, U::quantised},
    {R::expert_gate, "expert_gate", P::expert, U::quantised},
    {R::expert_up, "expert_up", P::expert, U::quantised},
    {R::expert_down, "expert_down", P::expert, U::quantised},
    {R::shared_gate, "shared_gate", P::rest, U::quantised},
    {R::shared_up, "shared_up", P::rest, U::quantised},
    {R::shared_down, "shared_down", P::rest, U::quantised},
    {R::shared_router, "shared_router", P::rest, U::left_alone},
    {R::ffn_post_norm, "ffn_post_norm", P::rest, U::none},
    {R::stream_correct, "stream_correct", P::rest, U::left_alone},
    {R::stream_scale, "stream_scale", P::rest, U::none},
    {R::input_gate, "input_gate", P::rest, U::left_alone},
    {R::input_out, "input_out", P::rest, U::left_alone},
    {R::input_post_norm, "input_post_norm", P::rest, U::none},
    {R::layer_scale, "layer_scale", P::rest, U::none},
    {R::hyper_head, "hyper_head", P::head, U::left_alone, false, true},
    {R::hyper_head_base, "hyper_head_base", P::head, U::none, false, true},
    {R::hyper_head_scale, "hyper_head_scale", P::head, U::none, false, true},
    {R::hyper_head_norm, "hyper_head_norm", P::head, U::none},
    {R::hyper_head_down, "hyper_head_down", P::head, U::left_alone},
    {R::hyper_head_up, "hyper_head_up", P::head, U::left_alone},
    {R::norm, "norm", P::head, U::none},
    {R::stream_out, "stream_out", P::head, U::left_alone},
    {R::head_down, "head_down", P::head, U::left_alone},
    {R::lm_head, "lm_head", P::head, U::left_alone},
}};

constexpr bool in_order() {
  for (size_t i = 0; i < kRoles.size(); ++i) {
    if (static_cast<size_t>(kRoles[i].role) != i) return false;
  }
  return true;
}
static_assert(in_order());

}  // namespace

const RoleRow& role_row(TensorRole role) {
  return kRoles[static_cast<size_t>(role)];
}

}  // namespace fp8kv
