#include "config/families/groups/llama_variants.h"

#include <cmath>

#include "base/error.h"
#include "config/families/experts_config.h"
#include "config/families/families.h"
#include "config/families/rope_spellings.h"
#include "config/families/tensor_blocks.h"
#include "config/families/tensor_rows.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

const TensorRow kInternLm2Tensors[] = {
    {"model.tok_embeddings", {embedding}},
    {"model.layers.{}.attention_norm", {attn_norm}},
    {"model.layers.{}.attention.wqkv", {q, k, v}, TensorLayout::by_kv_head},
    {"model.layers.{}.attention.wo", {o}},
    {"model.layers.{}.ffn_norm", {ffn_norm}},
    {"model.layers.{}.feed_forward.w1", {gate}},
    {"model.layers.{}.feed_forward.w3", {up}},
    {"model.layers.{}.feed_forward.w2", {down}},
    {"model.norm", {norm}},
    {"lm_head", {lm_head}},
};

const TensorRow kBaichuanTensors[] = {
    {"model.embed_tokens", {embedding}},
    {"model.layers.{}.input_layernorm", {attn_norm}},
    {"model.layers.{}.self_attn.W_pack", {q, k, v}},
    {"model.layers.{}.self_attn.o_proj", {o}},
    {"model.layers.{}.post_attention_layernorm", {ffn_norm}},
    {"model.layers.{}.mlp.gate_proj", {gate}},
    {"model.layers.{}.mlp.up_proj", {up}},
    {"model.layers.{}.mlp.down_proj", {down}},
    {"model.norm", {norm}},
    {"lm_head", {lm_head}},
};

// One tensor holds all experts of a layer, transposed.
const TensorRow kLlama4Tensors[] = {
    {"model.embed_tokens", {embedding}},
    {"model.layers.{}.input_layernorm", {attn_norm}},
    {"model.layers.{}.self_attn.q_proj", {q}},
    {"model.layers.{}.self_attn.k_proj", {k}},
    {"model.layers.{}.self_attn.v_proj", {v}},
    {"model.layers.{}.self_attn.o_proj", {o}},
    {"model.layers.{}.post_attention_layernorm", {ffn_norm}},
    {"model.layers.{}.feed_forward.gate_proj", {gate}},
    {"model.layers.{}.feed_forward.up_proj", {up}},
    {"model.layers.{}.feed_forward.down_proj", {down}},
    {"model.layers.{}.feed_forward.router", {router}},
    {.name = "model.layers.{}.feed_forward.experts.gate_up_proj",
     .roles = {expert_gate, expert_up},
     .layout = TensorLayout::transposed,
     .bare = true},
    {.name = "model.layers.{}.feed_forward.experts.down_proj",
     .roles = {expert_down},
     .layout = TensorLayout::transposed,
     .bare = true},
    {"model.layers.{}.feed_forward.shared_expert.gate_proj", {shared_gate}},
    {"model.layers.{}.feed_forward.shared_expert.up_proj", {shared_up}},
    {"model.layers.{}.feed_forward.shared_expert.down_proj", {shared_down}},
    {"model.norm", {norm}},
    {"lm_head", {lm_head}},
};

// For files from llm-compressor, where each expert has its own tensors.
std::span<const TensorRow> llama4_tensors_apart() {
  static const TensorRows rows = with_experts(
      kLlama4Tensors, {{"model.layers.{}.feed_forward.experts.{e}.gate_proj", {expert_gate}},
                       {"model.layers.{}.feed_forward.experts.{e}.up_proj", {expert_up}},
                       {"model.layers.{}.feed_forward.experts.{e}.down_proj", {expert_down}}});
  return rows;
}

void parse_internlm2(const Json& config, ModelConfig& out) {
  out.qkv_bias = out.o_bias = is_on(config, "bias");
}

// Reads a switch under its published name or under the name that transformers 5 saves.
bool is_set(const Json& config, const char* published, const char* saved) {
  const auto one = config.find(published), other = config.find(saved);
  check_same(one, other);
  return one ? one->as_bool() : other && other->as_bool();
}

void parse_internlm3(const Json& config, ModelConfig& out) {
  out.qkv_bias = is_set(config, "qkv_bias", "attention_bias");
  out.o_bias = out.mlp_bias = is_set(config, "bias", "mlp_bias");
}

// The 7B models rotate, and their configs give a context. The 13B models use ALiBi, and their
// configs give none. Version 2 is recognised by its vocabulary, or by a key that version 1 lacks.
void parse_baichuan(const Json& config, ModelConfig& out) {
  constexpr int64_t kVocabulary2 = 125696;
  static_cast<void>(config.find("z_loss_weight"));  // marks the key as read, whatever its value
  out.block.head_normed = out.vocab_size == kVocabulary2 || mentions(config, "z_loss_weight");
  if (config.has("max_position_embeddings")) return;
  out.ropes.clear();
  out.layer_ropes.assign(out.layers.size(), -1);
  out.block.score_bias = ScoreBias::alibi;
}

void parse_minicpm(const Json& config, ModelConfig& out) {
  out.qkv_bias = out.o_bias = config.get_bool("attention_bias", false);
  if (const auto sparse = config.find("sparse_config")) {
    fail(sparse->where(), ": is ", sparse->brief(),
         ": attention to a choice of tokens is not supported");
  }
  BlockConfig& block = out.block;
  block.embed_multiplier = positive_number(config.at("scale_emb"));
  block.residual_multiplier =
      positive_number(config.at("scale_depth")) / std::sqrt(static_cast<double>(out.n_layers()));
  block.logit_multiplier =
      positive_number(config.at("dim_model_base")) / static_cast<double>(out.dim);
}

// Older configs have a number in place of this switch.
bool tunes_temperature(const Json& config) {
  constexpr const char* kKey = "attn_temperature_tuning";
  const auto found = config.find(kKey);
  return found && found->is_number() ? found->as_double() != 0 : is_on(config, kKey);
}

// In layers that do not rotate, Q grows with the position instead.
void stop_rotation(const Json& config, ModelConfig& out) {
  const std::vector<bool> rotates = rotating_layers(config, out.layers.size());
  const bool grows = tunes_temperature(config);
  RopeConfig still;
  still.turns = false;
  still.pairs = out.ropes[0].pairs;
  still.original_context = positive_or(config, "floor_scale", 8192.0);
  still.q_growth = positive_or(config, "attn_scale", 0.1);
  still.q_growth_from = 1.0;
  for (size_t i = 0; i < rotates.size(); ++i) {
    if (!rotates[i]) out.layer_ropes[i] = grows ? 1 : -1;
  }
  if (grows) out.ropes.push_back(still);
}

// Transformers norms Q and K after the rotation, this program before it. Both give the same result
// unless the rotation multiplies by a factor.
void check_rotation_keeps_length(const Json& config, const ModelConfig& model) {
  const double factor = model.ropes[0].attention_factor;
  if (model.block.qk_norm == QkNorm::none || factor == 1) return;
  fail(find_scaling(config)->where(), ": multiplies Q and K by ", factor,
       " as they are rotated, expected 1: their norms come after that in this architecture");
}

void parse_llama4(const Json& config, ModelConfig& out) {
  out.qkv_bias = out.o_bias = config.get_bool("attention_bias", false);
  // The key must exist: without it all layers would see all tokens. Null says the same openly.
  if (!mentions(config, "attention_chunk_size")) config.at("attention_chunk_size");
  if (is_on(config, "use_qk_norm")) out.block.qk_norm = QkNorm::plain;
  check_rotation_keeps_length(config, out);
  stop_rotation(config, out);
  parse_experts(config, {{"num_local_experts", "num_experts"}, "intermediate_size"}, out);
  out.hidden_dim = in_range(config.at("intermediate_size_mlp"), kLargestDim);
  if (!out.experts) return;
  out.experts->routing.score = RouterScore::sigmoid;
  out.experts->routing.weigh_input = true;
  out.experts->shared_hidden_dim = out.experts->hidden_dim;
}

const Architecture kVariants[] = {
    {.name = "InternLM2ForCausalLM",
     .model_type = "internlm2",
     .summary = "InternLM 2, 2.5",
     .parse = parse_internlm2,
     .tensors = kInternLm2Tensors,
     .activations = kSilu,
     .lm_head = "output"},
    {.name = "InternLM3ForCausalLM",
     .model_type = "internlm3",
     .summary = "InternLM 3",
     .parse = parse_internlm3,
     .tensors = llama_tensors(),
     .activations = kSilu},
    {.name = "BaichuanForCausalLM",
     .model_type = "baichuan",
     .summary = "Baichuan 13B, Baichuan 2",
     .parse = parse_baichuan,
     .tensors = kBaichuanTensors,
     .activations = kSilu},
    {.name = "BaiChuanForCausalLM",
     .model_type = "baichuan",
     .summary = "Baichuan 7B",
     .parse = parse_baichuan,
     .tensors = kBaichuanTensors,
     .activations = kSilu},
    {.name = "MiniCPMForCausalLM",
     .model_type = "minicpm",
     .summary = "MiniCPM 1, 2 and 4, dense",
     .parse = parse_minicpm,
     .tensors = llama_tensors(),
     .activations = kSilu,
     .tied = true},
    {.name = "Llama4ForCausalLM",
     .model_type = "llama4_text",
     .summary = "Llama 4",
     .chunks = true,
     .parse = parse_llama4,
     .tensors = kLlama4Tensors,
     .other_tensors = llama4_tensors_apart(),
     .activations = kSilu,
     .rope = {.theta = 500000.0, .pairs = RopePairs::neighbours}},
};

}  // namespace

std::span<const Architecture> llama_variants() {
  return kVariants;
}

}  // namespace fp8kv
