#include "config/families/groups/latent_architectures.h"

#include <cmath>
#include <string>

#include "base/error.h"
#include "config/families/experts_config.h"
#include "config/families/rope_scalings.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

// Layers without experts are like Llama's.
TensorRows latent_tensors(bool q_in_two) {
  return joined({opening(), latent_attention(q_in_two), attention_out(), next_norm(), gated_mlp(),
                 deepseek_experts(), ending()});
}

std::span<const TensorRow> plain_q_tensors() {
  static const TensorRows rows = latent_tensors(false);
  return rows;
}

void parse_deepseek_router(const Json& text, ModelConfig& out) {
  check_router_says(text, "scoring_func", "sigmoid");
  check_router_says(text, "topk_method", "noaux_tc");
  if (!out.experts) return;
  for (const char* key : {"n_group", "topk_group"}) text.at(key);
  parse_sigmoid_router(text, out);
}

void parse_deepseek_v2(const Json& text, ModelConfig& out) {
  parse_latent(text, out);
  parse_latent_experts(text, out);
  if (!out.experts) return;
  check_router_says(text, "scoring_func", "softmax");
  // Transformers does not read this key, but other runtimes do.
  refuse_if_set(text, "norm_topk_prob", "dividing the weights of experts by their sum");
  const auto method = text.find("topk_method");
  if (!method || method->as_string() == "greedy") {
    for (const char* key : {"n_group", "topk_group"}) text.find(key);
    return;
  }
  check_router_says(text, "topk_method", "group_limited_greedy");
  parse_expert_groups(text, out);
  out.experts->routing.group_worth = GroupWorth::largest;
}

// DeepSeek V3, and also Kimi K2.
void parse_deepseek_v3(const Json& text, ModelConfig& out) {
  text.at("first_k_dense_replace");
  parse_latent(text, out);
  set_latent_pairs(text, out);
  parse_latent_experts(text, out);
  parse_deepseek_router(text, out);
}

void parse_glm4_moe_lite(const Json& text, ModelConfig& out) {
  parse_latent(text, out);
  set_latent_pairs(text, out);
  parse_latent_experts(text, out);
  parse_deepseek_router(text, out);
}

std::span<const TensorRow> sparse_tensors() {
  static const TensorRows rows = joined({latent_tensors(true), latent_indexer()});
  return rows;
}

void parse_sparse(const Json& text, RopePairs index_pairs, ModelConfig& out) {
  // One of these keys must say which layers have experts; transformers' default is three dense
  // layers.
  if (!text.has("mlp_layer_types")) text.at("first_k_dense_replace");
  text.find("first_k_dense_replace");
  parse_latent(text, out);
  if (const auto pairs = text.find("rope_interleave"); pairs && !pairs->as_bool()) {
    fail(pairs->where(), ": is false, expected true: neighbours are rotated in this architecture");
  }
  parse_latent_experts(text, out);
  parse_deepseek_router(text, out);
  parse_latent_indexer(text, index_pairs, out);
}

void parse_deepseek_v32(const Json& text, ModelConfig& out) {
  parse_sparse(text, RopePairs::halves, out);
}

void parse_glm_dsa(const Json& text, ModelConfig& out) {
  parse_sparse(text, RopePairs::neighbours, out);
}

// Youtu-LLM: DeepSeek V3 without experts.
void parse_youtu(const Json& text, ModelConfig& out) {
  parse_latent(text, out);
  set_latent_pairs(text, out);
}

constexpr std::string_view kKimi[] = {"kimi_k2"};
constexpr RopeStyle kLatentRope = {.pairs = RopePairs::neighbours, .reads_mscale = true};

const Architecture kLatent[] = {
    {.name = "DeepseekV2ForCausalLM",
     .model_type = "deepseek_v2",
     .summary = "DeepSeek V2, V2 Lite, V2.5 and Coder V2",
     .parse = parse_deepseek_v2,
     .tensors = latent_q_tensors(),
     .activations = kSilu,
     .rope = kLatentRope},
    {.name = "DeepseekV3ForCausalLM",
     .model_type = "deepseek_v3",
     .summary = "DeepSeek V3, V3.1 and R1, Kimi K2",
     .parse = parse_deepseek_v3,
     .tensors = latent_q_tensors(),
     .activations = kSilu,
     .rope = kLatentRope,
     .more_types = kKimi,
     .inner_types = kKimi},
    {.name = "DeepseekV32ForCausalLM",
     .model_type = "deepseek_v32",
     .summary = "DeepSeek V3.2",
     .parse = parse_deepseek_v32,
     .tensors = sparse_tensors(),
     .activations = kSilu,
     .rope = kLatentRope},
    {.name = "Glm4MoeLiteForCausalLM",
     .model_type = "glm4_moe_lite",
     .summary = "GLM-4.7 Flash",
     .parse = parse_glm4_moe_lite,
     .tensors = latent_q_tensors(),
     .activations = kSilu,
     .rope = kLatentRope},
    {.name = "GlmMoeDsaForCausalLM",
     .model_type = "glm_moe_dsa",
     .summary = "GLM-5",
     .parse = parse_glm_dsa,
     .tensors = sparse_tensors(),
     .activations = kSilu,
     .rope = kLatentRope},
    {.name = "YoutuForCausalLM",
     .model_type = "youtu",
     .summary = "Youtu-LLM",
     .parse = parse_youtu,
     .tensors = latent_q_tensors(),
     .activations = kSilu,
     .tied = true,
     .rope = kLatentRope},
};

}  // namespace

TensorRows latent_attention(bool q_in_two) {
  const TensorRows q_rows = {{"model.layers.{}.self_attn.q_a_proj", {q_down}},
                             {"model.layers.{}.self_attn.q_a_layernorm", {q_down_norm}},
                             {"model.layers.{}.self_attn.q_b_proj", {q}}};
  return joined({q_in_two ? q_rows : TensorRows{{"model.layers.{}.self_attn.q_proj", {q}}},
                 {{"model.layers.{}.self_attn.kv_a_proj_with_mqa", {latent, k_rope}},
                  {"model.layers.{}.self_attn.kv_a_layernorm", {latent_norm}},
                  {"model.layers.{}.self_attn.kv_b_proj", {k_up, v_up}, TensorLayout::by_head}}});
}

TensorRows latent_indexer() {
  return {{"model.layers.{}.self_attn.indexer.wq_b", {index_q}},
          {"model.layers.{}.self_attn.indexer.wk", {index_k}},
          {"model.layers.{}.self_attn.indexer.k_norm", {index_norm}},
          {"model.layers.{}.self_attn.indexer.weights_proj", {index_weights}}};
}

std::span<const TensorRow> latent_q_tensors() {
  static const TensorRows rows = latent_tensors(true);
  return rows;
}

void parse_latent(const Json& text, ModelConfig& out, int64_t usual_v_dim) {
  LatentConfig& latent = out.latent.emplace();
  latent.rank = in_range(text.at("kv_lora_rank"), kLargestDim);
  const Json rope_dim = text.at("qk_rope_head_dim");
  // Without a rotation, the latent may be all that is cached.
  latent.rope_dim = in_range(rope_dim, out.ropes.empty() ? 0 : 1, kLargestDim);
  if (latent.rope_dim % 2 != 0) {
    fail(rope_dim.where(), ": is ", latent.rope_dim,
         ", expected an even number, since K is rotated in pairs");
  }
  latent.nope_dim = in_range(text.at("qk_nope_head_dim"), kLargestDim);
  const bool has_v_dim = usual_v_dim == 0 || text.has("v_head_dim");
  latent.v_dim = has_v_dim ? in_range(text.at("v_head_dim"), kLargestDim) : usual_v_dim;
  if (const auto rank = text.find("q_lora_rank")) latent.q_rank = in_range(*rank, kLargestDim);
  if (latent.q_rank == 0) out.tensors = plain_q_tensors();
  if (const auto heads = text.find("num_key_value_heads");
      heads && heads->as_int() != out.n_heads) {
    fail(heads->where(), ": is ", heads->brief(), ", expected ", out.n_heads,
         ", as many as attention heads: all of them read the latent");
  }
  if (!out.ropes.empty()) out.ropes[0].rotary_dim = latent.rope_dim;
  const auto q_dim = static_cast<double>(latent.nope_dim + latent.rope_dim);
  out.block.attention_scale = yarn_score_factor(text) / std::sqrt(q_dim);
  out.qkv_bias = out.o_bias = text.get_bool("attention_bias", false);
}

void set_latent_pairs(const Json& text, ModelConfig& out) {
  const bool neighbours = is_on(text, "rope_interleave");
  out.ropes[0].pairs = neighbours ? RopePairs::neighbours : RopePairs::halves;
}

void parse_latent_experts(const Json& text, ModelConfig& out) {
  if (const auto step = text.find("moe_layer_freq"); step && step->as_int() != 1) {
    fail(step->where(), ": is ", step->brief(),
         ", expected 1: experts in some of the layers are not supported");
  }
  parse_experts(text, {{"n_routed_experts"}, "moe_intermediate_size"}, out);
  if (!out.experts) return;
  ExpertsConfig& experts = *out.experts;
  experts.routing.scale = positive_number(text.at("routed_scaling_factor"));
  experts.shared_hidden_dim =
      experts.hidden_dim * in_range(text.at("n_shared_experts"), kLargestDim / experts.hidden_dim);
}

void parse_latent_indexer(const Json& text, RopePairs pairs, ModelConfig& out) {
  IndexerConfig indexer{.n_heads = in_range(text.at("index_n_heads"), kLargestDim),
                        .head_dim = in_range(text.at("index_head_dim"), kLargestDim),
                        .rope_dim = out.latent->rope_dim,
                        .top_k = in_range(text.at("index_topk"), kLongestContext),
                        .pairs = pairs};
  const bool neighbours = pairs == RopePairs::neighbours;
  if (const auto told = text.find("indexer_rope_interleave");
      told && told->as_bool() != neighbours) {
    fail(told->where(), ": is ", told->brief(), ", expected ", neighbours ? "true" : "false",
         " in this architecture");
  }
  if (indexer.top_k >= out.max_seq_len) {
    for (LayerDescription& layer : out.layers) layer.index_bytes = 0;
    return;
  }
  const Json head_dim = text.at("index_head_dim");
  if (indexer.head_dim <= indexer.rope_dim || indexer.head_dim % 2 != 0) {
    fail(head_dim.where(), ": is ", indexer.head_dim, ", expected an even number above ",
         indexer.rope_dim, ", of which qk_rope_head_dim rotate");
  }
  if (out.latent->q_rank == 0) {
    fail(text.where(),
         ": the key 'q_lora_rank' is missing, and the indexer reads the vector of that ",
         "size that Q is made from");
  }
  if (out.layers.front().index_bytes == 0) {
    fail(text.where(),
         ": layer 0 has no indexer of its own by indexer_types, index_topk_pattern or ",
         "index_topk_freq, and no layer before it has one");
  }
  out.indexer = indexer;
}

std::span<const Architecture> latent_architectures() {
  return kLatent;
}

}  // namespace fp8kv
