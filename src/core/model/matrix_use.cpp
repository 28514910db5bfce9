#include "core/model/matrix_use.h"

namespace fp8kv {

MatrixUse matrix_use(TensorRole role) {
  switch (role) {
    case TensorRole::q:
    case TensorRole::k:
    case TensorRole::v:
    case TensorRole::q_down:
    case TensorRole::latent:
    case TensorRole::k_rope:
    case TensorRole::k_up:
    case TensorRole::v_up:
    case TensorRole::o:
    case TensorRole::state_q:
    case TensorRole::state_k:
    case TensorRole::state_v:
    case TensorRole::state_gate:
    case TensorRole::state_out:
    case TensorRole::attn_gate:
    case TensorRole::gate:
    case TensorRole::up:
    case TensorRole::down:
    case TensorRole::experts_in:
    case TensorRole::experts_out:
    case TensorRole::expert_gate:
    case TensorRole::expert_up:
    case TensorRole::expert_down:
    case TensorRole::shared_gate:
    case TensorRole::shared_up:
    case TensorRole::shared_down:
      return MatrixUse::quantised;
    case TensorRole::embed_up:
    case TensorRole::state_step:
    case TensorRole::state_strength:
    case TensorRole::layer_projection:
    case TensorRole::stream_in:
    case TensorRole::stream_router:
    case TensorRole::stream_predict:
    case TensorRole::stream_correct:
    case TensorRole::stream_out:
    case TensorRole::laurel_down:
    case TensorRole::laurel_up:
    case TensorRole::input_gate:
    case TensorRole::input_out:
    case TensorRole::router:
    case TensorRole::shared_router:
    case TensorRole::head_down:
    case TensorRole::lm_head:
      return MatrixUse::left_alone;
    case TensorRole::embedding:
    case TensorRole::positions:
    case TensorRole::layer_embedding:
    case TensorRole::layer_projection_norm:
    case TensorRole::input_post_norm:
    case TensorRole::layer_scale:
    case TensorRole::stream_norm:
    case TensorRole::stream_scale:
    case TensorRole::laurel_norm:
    case TensorRole::attn_norm:
    case TensorRole::q_down_norm:
    case TensorRole::latent_norm:
    case TensorRole::q_norm:
    case TensorRole::k_norm:
    case TensorRole::sinks:
    case TensorRole::conv_q:
    case TensorRole::conv_k:
    case TensorRole::conv_v:
    case TensorRole::state_decay:
    case TensorRole::state_step_bias:
    case TensorRole::state_skip:
    case TensorRole::state_norm:
    case TensorRole::attn_post_norm:
    case TensorRole::ffn_norm:
    case TensorRole::router_norm:
    case TensorRole::choice_bias:
    case TensorRole::expert_factors:
    case TensorRole::experts_norm:
    case TensorRole::experts_post_norm:
    case TensorRole::dense_post_norm:
    case TensorRole::ffn_post_norm:
    case TensorRole::norm:
      break;
  }
  return MatrixUse::none;
}

}  // namespace fp8kv
