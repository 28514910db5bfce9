// DeepSeek V4: one row of a token is K and V for all heads, and layers see rows that pool blocks of
// tokens beside a window. An indexer chooses among the smaller pools. Streams that mix connect the
// blocks, and tables give the experts of a token in the first layers.
#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "config/families/experts_config.h"
#include "config/families/groups/mixing_streams.h"
#include "config/families/rope_scalings.h"
#include "config/families/rope_spellings.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

constexpr RopeStyle kV4Style = {.none = true, .checks_part = true, .pairs = RopePairs::neighbours};

// The elements of a head that rotate. transformers goes by partial_rotary_factor, and vLLM by
// qk_rope_head_dim.
int64_t row_rotation_of(const Json& config, int64_t head_dim) {
  const auto part = config.find("partial_rotary_factor");
  const auto said = config.find("qk_rope_head_dim");
  const Json key = said ? *said : config.at(part ? "partial_rotary_factor" : "qk_rope_head_dim");
  const auto of_part = [&](const Json& number) {
    const double size = static_cast<double>(head_dim) * positive_number(number);
    return static_cast<int64_t>(std::floor(size + 1e-9));
  };
  const int64_t rotated = said ? in_range(*said, head_dim) : of_part(*part);
  if (part && of_part(*part) != rotated) {
    fail(part->where(), ": is ", part->brief(), ", contrary to qk_rope_head_dim, which is ",
         rotated, ": transformers goes by the one, and vLLM by the other");
  }
  if (rotated < 2 || rotated % 2 != 0 || rotated > head_dim) {
    fail(key.where(), ": gives ", rotated,
         " elements of a head that rotate, expected an even number ", "up to ", head_dim);
  }
  return rotated;
}

void parse_row(const Json& config, ModelConfig& out) {
  SharedRowConfig& row = out.shared_row.emplace();
  const Json groups = config.at("o_groups");
  row.q_rank = in_range(config.at("q_lora_rank"), kLargestDim);
  row.rope_dim = row_rotation_of(config, out.head_dim());
  row.o_groups = in_range(groups, kLargestDim);
  row.o_rank = in_range(config.at("o_lora_rank"), kLargestDim);
  if (out.n_heads % row.o_groups != 0) {
    fail(groups.where(), ": is ", row.o_groups, ", expected a number that divides the ",
         out.n_heads, " attention heads");
  }
  out.block.sinks = true;
  out.f32_norms = true;
}

// One rotation of rope_parameters, in the spelling of transformers 5.
RopeConfig rope_in(const Json& config, const Json& object, const ModelConfig& out) {
  RopeConfig rope{.theta = kNoTheta};
  rope.rotary_dim = out.shared_row->rope_dim;
  rope.pairs = RopePairs::neighbours;
  parse_scaling({config, object, kV4Style, out, rope.rotary_dim}, rope);
  if (rope.theta == kNoTheta) rope.theta = positive_number(object.at("rope_theta"));
  const Json part = object.at("partial_rotary_factor");
  const double rotated = static_cast<double>(out.head_dim()) * positive_number(part);
  if (std::abs(rotated - static_cast<double>(rope.rotary_dim)) < 0.5) return rope;
  fail(part.where(), ": is ", part.brief(), ", which is not the ", rope.rotary_dim, " of the ",
       out.head_dim(), " elements of a head that rotate");
}

// The rotation of layers with pools, if the config has no object for it. transformers leaves out
// yarn's factor of Q and K unless the config gives one.
RopeConfig pool_rope(const Json& config, const std::optional<Json>& scaling,
                     const ModelConfig& out) {
  RopeConfig rope{.theta = positive_number(config.at("compress_rope_theta"))};
  rope.rotary_dim = out.shared_row->rope_dim;
  rope.pairs = RopePairs::neighbours;
  if (!scaling || scaling->size() == 0) return rope;
  const double theta = rope.theta;
  parse_scaling({config, *scaling, kV4Style, out, rope.rotary_dim}, rope);
  rope.theta = theta;
  const bool is_yarn = rope.scaling == RopeScaling::yarn;
  if (is_yarn && !scaling->has("attention_factor")) rope.attention_factor = 1.0;
  return rope;
}

void parse_row_ropes(const Json& config, ModelConfig& out) {
  const auto scaling = find_scaling(config);
  const bool apart = scaling && scaling->has("main") && scaling->has("compress");
  const auto base = config.find("rope_theta"), pool_base = config.find("compress_rope_theta");
  RopeConfig plain, pooled;
  if (apart) {
    plain = rope_in(config, scaling->at("main"), out);
    pooled = rope_in(config, scaling->at("compress"), out);
    check_same(base, scaling->at("main").find("rope_theta"));
    check_same(pool_base, scaling->at("compress").find("rope_theta"));
  } else {
    plain = {.theta = positive_number(config.at("rope_theta")),
             .rotary_dim = out.shared_row->rope_dim,
             .pairs = RopePairs::neighbours};
    pooled = pool_rope(config, scaling, out);
  }
  out.ropes = {plain, pooled};
  for (size_t i = 0; i < out.layers.size(); ++i)
    out.layer_ropes[i] = out.layers[i].pool > 0 ? 1 : 0;
  if (pooled.scaling != RopeScaling::yarn) return;
  const double longest = pooled.original_context * pooled.factor;
  if (longest > kLongestContext) fail(config.where(), ": its rope reaches to position ", longest);
  out.max_seq_len = std::max(out.max_seq_len, static_cast<int64_t>(longest));
}

// transformers goes by mlp_layer_types, and vLLM by num_hash_layers.
int64_t table_layers(const Json& config, const ModelConfig& out) {
  const auto types = config.find("mlp_layer_types"), number = config.find("num_hash_layers");
  if (!types && !number) config.at("num_hash_layers");
  int64_t tables = number ? std::min(in_range(*number, 0, kMostLayers), out.n_layers()) : 0;
  if (!types) return tables;
  if (!types->is_array() || types->size() != out.layers.size()) {
    fail(types->where(), ": is ", types->brief(), ", expected an array of ",
         count_of(out.layers.size(), "layer type"));
  }
  int64_t listed = 0;
  for (size_t i = 0; i < types->size(); ++i) {
    const Json type = (*types)[i];
    const bool table = type.as_string() == "hash_moe";
    if (!table && type.as_string() != "moe") {
      fail(type.where(), ": is ", type.brief(), ", expected 'hash_moe' or 'moe'");
    }
    if (table && listed != static_cast<int64_t>(i)) {
      fail(type.where(), ": is 'hash_moe' behind a layer of another type, expected 'moe'");
    }
    listed += table ? 1 : 0;
  }
  if (number && listed != tables) {
    fail(types->where(), ": has ", count_of(static_cast<uint64_t>(listed), "layer"),
         " of 'hash_moe', contrary to num_hash_layers, which is ", number->brief(),
         ": transformers goes by the one, and vLLM by the other");
  }
  return listed;
}

void parse_table_experts(const Json& config, ModelConfig& out) {
  check_router_says(config, "scoring_func", "sqrtsoftplus");
  check_router_says(config, "topk_method", "noaux_tc");
  check_same(config.find("intermediate_size"), config.find("moe_intermediate_size"));
  check_same(config.find("num_local_experts"), config.find("n_routed_experts"));
  if (!is_on(config, "norm_topk_prob")) {
    fail(config.at("norm_topk_prob").where(), ": is false: transformers divides the weights of ",
         "experts by their sum all the same, and vLLM does not");
  }
  const Json count = config.at("n_routed_experts");
  parse_experts(config, {{"n_routed_experts"}, "moe_intermediate_size"}, out);
  for (int64_t i = 0; i < out.n_layers(); ++i) {
    if (out.experts && out.has_experts(i)) continue;
    fail(count.where(), ": is ", count.brief(), ", but layer ", i,
         " has no experts, expected some ", "in every layer");
  }
  ExpertsConfig& experts = *out.experts;
  const Json shared = config.at("n_shared_experts");
  if (shared.as_int() != 1) fail(shared.where(), ": is ", shared.brief(), ", expected 1");
  experts.shared_hidden_dim = experts.hidden_dim;
  experts.choice_bias = true;
  experts.table_layers = table_layers(config, out);
  experts.routing.score = RouterScore::sqrt_softplus;
  experts.routing.normalise = true;
  experts.routing.epsilon = 1e-20;
  experts.routing.scale = positive_number(config.at("routed_scaling_factor"));
  const ClampedSwiglu swiglu{
      .limit = static_cast<float>(positive_number(config.at("swiglu_limit"))),
      .form = SwigluForm::silu};
  out.swiglus.assign(out.layers.size(), {.routed = swiglu, .dense = swiglu});
}

void parse_pool_indexer(const Json& config, ModelConfig& out) {
  const Json head_dim = config.at("index_head_dim");
  IndexerConfig indexer{.n_heads = in_range(config.at("index_n_heads"), kLargestDim),
                        .head_dim = in_range(head_dim, kLargestDim),
                        .rope_dim = out.shared_row->rope_dim,
                        .top_k = in_range(config.at("index_topk"), kLongestContext),
                        .pooled = true,
                        .weighted = true,
                        .pairs = RopePairs::neighbours,
                        .rotates_last = true,
                        .norm_eps = out.norm_eps};
  for (const LayerDescription& layer : out.layers) {
    if (layer.index_bytes > 0) indexer.block = layer.pool;
  }
  if (indexer.block > 1 && (indexer.head_dim <= indexer.rope_dim || indexer.head_dim % 2 != 0)) {
    fail(head_dim.where(), ": is ", indexer.head_dim, ", expected an even number above ",
         indexer.rope_dim, ", the elements that rotate");
  }
  if (indexer.block > 1 && indexer.most_tokens() < out.max_seq_len) {
    out.indexer = indexer;
    return;
  }
  for (LayerDescription& layer : out.layers) layer.index_bytes = layer.most_seen = 0;
}

void parse_deepseek_v4(const Json& config, ModelConfig& out) {
  refuse_if_set(config, "attention_bias", "a bias of attention's products");
  refuse_if_set(config, "mlp_bias", "a bias of the experts");
  // The first says how the files store experts, which their tensors say too. The other counts
  // layers that predict later tokens.
  for (const char* key : {"expert_dtype", "num_nextn_predict_layers"}) config.find(key);
  parse_row(config, out);
  parse_row_ropes(config, out);
  parse_mixing_streams(config, out);
  parse_table_experts(config, out);
  parse_pool_indexer(config, out);
}

// Published files have no "model." before these names. Where transformers 5.24 saves other names,
// they come first.
TensorRow bare_row(std::string_view name, TensorRole role) {
  return {.name = name, .roles = {role}, .bare = true};
}

TensorRow saved_row(std::string_view saved, std::string_view published, TensorRole role,
                    bool is_bare = false) {
  return {.name = saved, .roles = {role}, .bare = is_bare, .other_name = published};
}

TensorRows row_attention() {
  return {{"model.layers.{}.attn_norm", {attn_norm}},
          {"model.layers.{}.attn.wq_a", {q_down}},
          {"model.layers.{}.attn.q_norm", {q_down_norm}},
          {"model.layers.{}.attn.wq_b", {q}},
          {"model.layers.{}.attn.wkv", {k}},
          saved_row("model.layers.{}.attn.norm", "model.layers.{}.attn.kv_norm", k_norm),
          {"model.layers.{}.attn.compressor.wkv", {pool_rows}},
          {"model.layers.{}.attn.compressor.wgate", {pool_gate}},
          bare_row("model.layers.{}.attn.compressor.ape", pool_bias),
          {"model.layers.{}.attn.compressor.norm", {pool_norm}},
          bare_row("model.layers.{}.attn.attn_sink", sinks),
          {"model.layers.{}.attn.indexer.wq_b", {index_q}},
          {"model.layers.{}.attn.indexer.compressor.wkv", {index_k}},
          {"model.layers.{}.attn.indexer.compressor.wgate", {index_gate}},
          bare_row("model.layers.{}.attn.indexer.compressor.ape", index_bias),
          {"model.layers.{}.attn.indexer.compressor.norm", {index_norm}},
          {"model.layers.{}.attn.indexer.weights_proj", {index_weights}},
          {"model.layers.{}.attn.wo_a", {o_down}},
          {"model.layers.{}.attn.wo_b", {o}}};
}

TensorRows mixing_connections() {
  return {bare_row("model.layers.{}.hc_attn_fn", hyper_attn),
          bare_row("model.layers.{}.hc_attn_base", hyper_attn_base),
          bare_row("model.layers.{}.hc_attn_scale", hyper_attn_scale),
          bare_row("model.layers.{}.hc_ffn_fn", hyper_ffn),
          bare_row("model.layers.{}.hc_ffn_base", hyper_ffn_base),
          bare_row("model.layers.{}.hc_ffn_scale", hyper_ffn_scale),
          saved_row("model.hc_head.hc_fn", "model.hc_head_fn", hyper_head, true),
          saved_row("model.hc_head.hc_base", "model.hc_head_base", hyper_head_base, true),
          saved_row("model.hc_head.hc_scale", "model.hc_head_scale", hyper_head_scale, true)};
}

TensorRows table_experts() {
  return {{"model.layers.{}.ffn_norm", {ffn_norm}},
          {"model.layers.{}.ffn.gate", {router}},
          {"model.layers.{}.ffn.gate.bias", {choice_bias}},
          {"model.layers.{}.ffn.experts.{e}.w1", {expert_gate}},
          {"model.layers.{}.ffn.experts.{e}.w3", {expert_up}},
          {"model.layers.{}.ffn.experts.{e}.w2", {expert_down}},
          {"model.layers.{}.ffn.shared_experts.w1", {shared_gate}},
          {"model.layers.{}.ffn.shared_experts.w3", {shared_up}},
          {"model.layers.{}.ffn.shared_experts.w2", {shared_down}}};
}

std::span<const TensorRow> deepseek_v4_tensors() {
  static const TensorRows rows =
      joined({{saved_row("model.embed_tokens", "model.embed", embedding)},
              row_attention(),
              table_experts(),
              mixing_connections(),
              ending()});
  return rows;
}

}  // namespace

Architecture deepseek_v4() {
  return {.name = "DeepseekV4ForCausalLM",
          .model_type = "deepseek_v4",
          .summary = "DeepSeek V4",
          .windows = true,
          .parse = parse_deepseek_v4,
          .tensors = deepseek_v4_tensors(),
          .activations = kSilu,
          .hidden_dims = 1,
          .rope = kV4Style,
          .lm_head = "head"};
}

}  // namespace fp8kv
