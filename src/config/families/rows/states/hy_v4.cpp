// HunYuan 4, alone or with images: latent attention with sinks, a gate and the sparse indexer of
// DeepSeek V3.2, experts of DeepSeek V3, and hyper-connections whose streams do not mix.
#include "base/error.h"
#include "config/families/experts_config.h"
#include "config/families/groups/latent_architectures.h"
#include "config/families/rows/family_rows.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

constexpr std::string_view kHyVisionInside[] = {"hy_v4_vl_text"};

// vLLM reads these keys, and transformers takes it for granted what they say.
void check_granted_by_hy_v4(const Json& config) {
  for (const char* key : {"enable_ihc", "gated_mla", "learnable_sink", "norm_topk_prob"}) {
    if (is_on(config, key)) continue;
    fail(config.at(key).where(), ": is false: a model without it is not supported");
  }
  check_says(config, "gating_type", "elementwise", "gate of attention");
  refuse_if_set(config, "soft_logits_capping", "a cap of the logits");
  refuse_if_set(config, "attention_bias", "a bias of attention's products");
  for (const char* key : {"n_group", "topk_group"}) {
    const auto groups = config.find(key);
    if (!groups || groups->as_int() == 1) continue;
    fail(groups->where(), ": is ", groups->brief(),
         ", expected 1: vLLM chooses among all experts whatever this says");
  }
  // The first two matter to training alone. The logits are in F32 whatever the third says.
  for (const char* key : {"learnable_sink_init", "mtp_loss_factor", "enable_lm_head_fp32"}) {
    config.find(key);
  }
}

// Throws for a layer that sees all tokens in one runtime, and chosen ones in another.
void check_all_sparse(const Json& types) {
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i].as_string() != "full_attention") continue;
    fail(types[i].where(), ": is ", types[i].brief(),
         ": transformers chooses tokens in every layer, and vLLM in other layers alone");
  }
}

// Tokens of text have one position in all three parts of a rotation, and so the usual one if the
// parts make up all angles.
void check_sections(const Json& config, int64_t angles) {
  const auto rope = find_any(config, {"rope_parameters", "rope_scaling"});
  const auto parts = rope ? rope->find("mrope_section") : std::nullopt;
  int64_t sum = parts ? 0 : 12 + 10 + 10;
  for (size_t i = 0; parts && i < parts->size(); ++i) sum += (*parts)[i].as_int();
  if (sum == angles && (!parts || parts->size() == 3)) return;
  fail((parts ? *parts : config).where(), ": ",
       parts ? "mrope_section is " : "mrope_section would be ",
       parts ? parts->brief() : "[12, 10, 10]", ", expected three numbers whose sum is ", angles,
       ", half of qk_rope_head_dim");
}

HyperConfig hyper_of(const Json& config) {
  HyperConfig hyper;
  const auto count = config.find("hc_mult");
  hyper.count = count ? in_range(*count, 2, kMostStreams) : 4;
  hyper.eps = positive_or(config, "hc_eps", 1e-6);
  hyper.most_written = positive_or(config, "hc_magnitude", 2.0);
  return hyper;
}

// Routed experts alone are clamped.
void set_swiglu_limit(const Json& config, ModelConfig& out) {
  const auto limit = config.find("swiglu_limit");
  if (limit && limit->as_double() <= 0) {
    fail(limit->where(), ": is ", limit->brief(),
         ", expected a number above 0: transformers clamps to it, and vLLM does not clamp");
  }
  const auto most = static_cast<float>(limit ? limit->as_double() : 10.0);
  const ClampedSwiglu swiglu{.limit = most, .form = SwigluForm::silu};
  out.swiglus.assign(out.layers.size(), {.routed = swiglu});
}

void parse_hy(const Json& config, RopePairs pairs, ModelConfig& out) {
  check_granted_by_hy_v4(config);
  // Without the first two, transformers and vLLM take different layers for granted.
  for (const char* key : {"layer_types", "mlp_layer_types", "q_lora_rank"}) config.at(key);
  check_all_sparse(config.at("layer_types"));
  parse_latent(config, out);
  if (out.ropes[0].scaling != RopeScaling::none) {
    fail(config.where(), ": scales its rope: transformers multiplies scores by the mscale of a ",
         "yarn in this architecture, and vLLM does not");
  }
  out.ropes[0].pairs = pairs;
  out.block.sinks = true;
  out.block.attention_gate = AttentionGate::sigmoid;
  out.hyper = hyper_of(config);
  parse_latent_indexer(config, pairs, out);
  if (out.indexer) {
    out.indexer->rotates_last = true;
    out.indexer->norm_eps = out.norm_eps;
  }
  parse_latent_experts(config, out);
  if (!out.experts) {
    for (const char* key : {"n_routed_experts", "n_shared_experts", "swiglu_limit"}) {
      config.find(key);
    }
    return;
  }
  parse_sigmoid_router(config, out);
  set_swiglu_limit(config, out);
}

void parse_hy_v4(const Json& config, ModelConfig& out) {
  parse_hy(config, RopePairs::halves, out);
}

// With images transformers rotates neighbours, and norms of the latent have the model's eps. vLLM
// does both without images too.
void parse_hy_v4_vl(const Json& config, ModelConfig& out) {
  parse_hy(config, RopePairs::neighbours, out);
  out.latent->norm_eps = out.norm_eps;
  check_sections(config, out.latent->rope_dim / 2);
}

// The name of a hyper-connection's tensor in published files, and as transformers 5.24 saves it.
TensorRow of_hyper(std::string_view published, std::string_view saved, TensorRole role) {
  return {.name = published, .roles = {role}, .bare = true, .other_name = saved};
}

TensorRow gate_of(std::string_view published, std::string_view saved, TensorRole role) {
  return {.name = published, .roles = {role}, .other_name = saved};
}

TensorRows hyper_rows() {
  return {
      of_hyper("model.layers.{}.hc_attn_layer.hc_pre.hc_fn",
               "model.layers.{}.hc_pre.hc_attn_layer.hc_fn", hyper_attn),
      of_hyper("model.layers.{}.hc_attn_layer.hc_pre.hc_base",
               "model.layers.{}.hc_pre.hc_attn_layer.hc_base", hyper_attn_base),
      of_hyper("model.layers.{}.hc_attn_layer.hc_pre.hc_scale",
               "model.layers.{}.hc_pre.hc_attn_layer.hc_scale", hyper_attn_scale),
      of_hyper("model.layers.{}.hc_mlp_layer.hc_pre.hc_fn",
               "model.layers.{}.hc_pre.hc_mlp_layer.hc_fn", hyper_ffn),
      of_hyper("model.layers.{}.hc_mlp_layer.hc_pre.hc_base",
               "model.layers.{}.hc_pre.hc_mlp_layer.hc_base", hyper_ffn_base),
      of_hyper("model.layers.{}.hc_mlp_layer.hc_pre.hc_scale",
               "model.layers.{}.hc_pre.hc_mlp_layer.hc_scale", hyper_ffn_scale),
  };
}

// The sum at the end of the model, whose tensors have a third name where transformers saves a model
// with images.
TensorRows hyper_head_rows(bool with_images) {
  const auto row = [&](std::string_view published, std::string_view saved,
                       std::string_view saved_with_images, TensorRole role) {
    return of_hyper(published, with_images ? saved_with_images : saved, role);
  };
  return {row("model.hc_head.hc_head_fn", "model.hc_pre.hc_head.hc_head_fn",
              "model.hc_head.hc_pre.hc_head_fn", hyper_head),
          row("model.hc_head.hc_head_base", "model.hc_pre.hc_head.hc_head_base",
              "model.hc_head.hc_pre.hc_head_base", hyper_head_base),
          row("model.hc_head.hc_head_scale", "model.hc_pre.hc_head.hc_head_scale",
              "model.hc_head.hc_pre.hc_head_scale", hyper_head_scale)};
}

// One tensor holds a matrix of all experts.
TensorRows hy_v4_rows(bool with_images) {
  return joined(
      {opening(),
       latent_attention(true),
       latent_indexer(),
       {{"model.layers.{}.self_attn.linear_gate", {attn_gate}},
        {.name = "model.layers.{}.self_attn.learnable_sink_param", .roles = {sinks}, .bare = true}},
       attention_out(),
       next_norm(),
       {gate_of("model.layers.{}.mlp.gate_proj", "model.layers.{}.mlp.linear_gate", gate),
        {"model.layers.{}.mlp.up_proj", {up}},
        {"model.layers.{}.mlp.down_proj", {down}},
        {"model.layers.{}.mlp.gate", {router}},
        {"model.layers.{}.mlp.gate.e_score_correction_bias", {choice_bias}}},
       experts_together(),
       {gate_of("model.layers.{}.mlp.shared_experts.gate_proj",
                "model.layers.{}.mlp.shared_experts.linear_gate", shared_gate),
        {"model.layers.{}.mlp.shared_experts.up_proj", {shared_up}},
        {"model.layers.{}.mlp.shared_experts.down_proj", {shared_down}}},
       hyper_rows(),
       hyper_head_rows(with_images),
       ending()});
}

std::span<const TensorRow> hy_v4_tensors() {
  static const TensorRows rows = hy_v4_rows(false);
  return rows;
}

std::span<const TensorRow> hy_v4_tensors_apart() {
  static const TensorRows rows = with_experts(hy_v4_tensors(), experts_apart());
  return rows;
}

std::span<const TensorRow> hy_v4_vl_tensors() {
  static const TensorRows rows = hy_v4_rows(true);
  return rows;
}

std::span<const TensorRow> hy_v4_vl_tensors_apart() {
  static const TensorRows rows = with_experts(hy_v4_vl_tensors(), experts_apart());
  return rows;
}

}  // namespace

Architecture hy_v4() {
  return {.name = "HYV4ForCausalLM",
          .model_type = "hy_v4",
          .summary = "HunYuan 4",
          .parse = parse_hy_v4,
          .tensors = hy_v4_tensors(),
          .other_tensors = hy_v4_tensors_apart(),
          .activations = kSilu};
}

Architecture hy_v4_vl() {
  return {.name = "HYV4VLForConditionalGeneration",
          .model_type = "hy_v4_vl",
          .summary = "HunYuan 4 with images",
          .parse = parse_hy_v4_vl,
          .tensors = hy_v4_vl_tensors(),
          .other_tensors = hy_v4_vl_tensors_apart(),
          .activations = kSilu,
          .inner_types = kHyVisionInside};
}

}  // namespace fp8kv
