// MiniMax M3: attention of Qwen 3 with Gemma's norms. In most layers an indexer chooses blocks of
// tokens for each KV head. Every feed-forward part has the clamped SwiGLU of gpt-oss.
#include <algorithm>

#include "base/error.h"
#include "config/describe/describe_indexer.h"
#include "config/families/experts_config.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

constexpr std::string_view kMinimaxM3Inside[] = {"minimax_m3_text", "minimax_m3_vl_text"};
constexpr NamedActivation kSwigluOai[] = {{"silu", Activation::silu},
                                          {"swigluoai", Activation::silu}};

// Throws unless the member is missing or has the number that transformers takes.
void check_number(const Json& config, const char* key, double taken) {
  const auto said = config.find(key);
  if (!said || said->as_double() == taken) return;
  fail(said->where(), ": is ", said->brief(), ", expected ", taken,
       ", which transformers takes whatever this key says");
}

// vLLM reads these keys, and transformers 5.24 takes it for granted what they say.
void check_granted(const Json& config) {
  refuse_if_set(config, "attention_output_gate", "a gate of attention's output");
  for (const char* key : {"use_gemma_norm", "use_qk_norm", "use_routing_bias"}) {
    if (is_on(config, key)) continue;
    fail(config.at(key).where(), ": is false: a model without it is not supported");
  }
  check_says(config, "qk_norm_type", "per_head", "norm of Q and K");
  check_router_says(config, "scoring_func", "sigmoid");
  check_number(config, "swiglu_beta", 1);
  check_number(config, "n_shared_experts", 1);
  const auto sparse = config.find("sparse_attention_config");
  if (!sparse) return;
  check_number(*sparse, "sparse_init_block", 0);
  check_says(*sparse, "sparse_score_type", "max", "score of a block");
  if (!is_on(*sparse, "use_sparse_attention")) {
    fail(sparse->at("use_sparse_attention").where(), ": is false, expected true: transformers ",
         "goes by the layers that have an indexer");
  }
}

// The part of a head that rotates has a key that transformers and vLLM read, and one that neither
// reads.
void check_rotated_part(const Json& config, int64_t rotated) {
  const auto rope = config.find("rope_parameters");
  if (!rope || !rope->has("partial_rotary_factor")) {
    config.at("partial_rotary_factor");  // without it transformers takes 1, and vLLM 0.5
  }
  const auto size = config.find("rotary_dim");
  if (!size || size->as_int() == rotated) return;
  fail(size->where(), ": is ", size->brief(), ", expected ", rotated,
       " by partial_rotary_factor, which is what transformers and vLLM read");
}

void fail_index(const Json& config, const char* what, int64_t found, std::string_view expected) {
  fail(config.where(), ": the indexer has ", what, " ", found, ", expected ", expected);
}

void parse_indexer(const Json& config, ModelConfig& out) {
  IndexerConfig indexer{
      .n_heads = index_number(config, "index_n_heads", "sparse_num_index_heads", 4),
      .head_dim = index_number(config, "index_head_dim", "sparse_index_dim", 128),
      .rope_dim = out.ropes.front().rotary_dim > 0 ? out.ropes.front().rotary_dim : out.head_dim(),
      .top_k = index_number(config, "index_topk_blocks", "sparse_topk_blocks", 16),
      .block = index_number(config, "index_block_size", "sparse_block_size", 128),
      .local_blocks = index_number(config, "index_local_blocks", "sparse_local_block", 1),
      .by_kv_head = true};
  const bool any = std::any_of(out.layers.begin(), out.layers.end(),
                               [](const auto& layer) { return layer.index_bytes > 0; });
  if (!any) return;
  if (indexer.top_k * indexer.block >= out.max_seq_len) {
    for (LayerDescription& layer : out.layers) layer.index_bytes = 0;
    return;
  }
  const int64_t kv_heads = out.layers.front().n_kv_heads;
  if (indexer.n_heads != kv_heads) {
    fail_index(config, "index_n_heads", indexer.n_heads,
               cat(kv_heads, ", as many as there are KV heads"));
  }
  if (indexer.head_dim <= indexer.rope_dim || indexer.head_dim % 2 != 0) {
    fail_index(config, "index_head_dim", indexer.head_dim,
               cat("an even number above the ", indexer.rope_dim, " elements that rotate"));
  }
  if (indexer.local_blocks > indexer.top_k) {
    fail_index(config, "index_local_blocks", indexer.local_blocks,
               cat("at most index_topk_blocks, which is ", indexer.top_k));
  }
  out.indexer = indexer;
}

void parse_minimax_m3(const Json& config, ModelConfig& out) {
  // The models' defaults are other numbers than those of the common form.
  for (const char* key : {"head_dim", "num_key_value_heads"}) config.at(key);
  // Without these lists transformers and vLLM take other layers.
  if (!config.has("layer_types")) {
    config.at("sparse_attention_config").at("sparse_attention_freq");
  }
  if (!config.has("mlp_layer_types")) config.at("moe_layer_freq");
  check_granted(config);
  check_rotated_part(
      config, out.ropes.front().rotary_dim > 0 ? out.ropes.front().rotary_dim : out.head_dim());
  out.block.norm_plus_one = true;
  out.block.qk_norm = QkNorm::per_head;
  const ClampedSwiglu swiglu{
      .alpha = static_cast<float>(positive_or(config, "swiglu_alpha", 1.702)),
      .limit = static_cast<float>(positive_or(config, "swiglu_limit", 7.0))};
  out.swiglus.assign(out.layers.size(), {.routed = swiglu, .dense = swiglu});
  const auto dense = config.find("dense_intermediate_size");
  out.hidden_dim = dense ? in_range(*dense, kLargestDim) : 12288;
  parse_indexer(config, out);
  const auto shared = config.find("shared_intermediate_size");
  parse_experts(config, {{"num_local_experts", "num_experts"}, "intermediate_size"}, out);
  if (!out.experts) config.at("num_local_experts");
  if (!out.experts) return;
  set_plain_sigmoid_router(config, "routed_scaling_factor", 2.0, out);
  out.experts->shared_hidden_dim = shared ? in_range(*shared, kLargestDim) : 3072;
}

std::span<const TensorRow> minimax_m3_tensors() {
  static const TensorRows rows =
      joined({opening(),
              qkv(),
              qk_norms(),
              {{"model.layers.{}.self_attn.index_q_proj", {index_q}},
               {"model.layers.{}.self_attn.index_k_proj", {index_k}},
               {"model.layers.{}.self_attn.index_q_norm", {index_q_norm}},
               {"model.layers.{}.self_attn.index_k_norm", {index_norm}}},
              attention_out(),
              next_norm(),
              gated_mlp(),
              {{"model.layers.{}.block_sparse_moe.gate", {router}},
               {"model.layers.{}.block_sparse_moe.e_score_correction_bias", {choice_bias}},
               {"model.layers.{}.block_sparse_moe.experts.{e}.w1", {expert_gate}},
               {"model.layers.{}.block_sparse_moe.experts.{e}.w3", {expert_up}},
               {"model.layers.{}.block_sparse_moe.experts.{e}.w2", {expert_down}},
               {"model.layers.{}.block_sparse_moe.shared_experts.gate_proj", {shared_gate}},
               {"model.layers.{}.block_sparse_moe.shared_experts.up_proj", {shared_up}},
               {"model.layers.{}.block_sparse_moe.shared_experts.down_proj", {shared_down}}},
              ending()});
  return rows;
}

}  // namespace

Architecture minimax_m3() {
  return {.name = "MiniMaxM3SparseForConditionalGeneration",
          .model_type = "minimax_m3_vl",
          .summary = "MiniMax M3",
          .parse = parse_minimax_m3,
          .tensors = minimax_m3_tensors(),
          .activations = kSwigluOai,
          .rope = {.theta = 5e6, .reads_part = true},
          .inner_types = kMinimaxM3Inside};
}

}  // namespace fp8kv
