// MiniMax Text 01 and M1: lightning attention in most layers, with a decay that is fixed for each
// head, and softmax attention in the others. The normed stream goes on, and all layers have
// experts.
#include <array>
#include <string>
#include <string_view>

#include "base/error.h"
#include "config/families/experts_config.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

// The keys of a stream's factor and of an output's, for one kind of block.
struct FactorKeys {
  const char* stream;
  const char* output;
};

struct FactorNames {
  FactorKeys attention, state, feed_forward;
};

// Keys of published files, and of those that transformers saves.
constexpr FactorNames kPublished = {
    {"layernorm_full_attention_alpha", "layernorm_full_attention_beta"},
    {"layernorm_linear_attention_alpha", "layernorm_linear_attention_beta"},
    {"layernorm_mlp_alpha", "layernorm_mlp_beta"}};
constexpr FactorNames kSaved = {{"full_attn_alpha_factor", "full_attn_beta_factor"},
                                {"linear_attn_alpha_factor", "linear_attn_beta_factor"},
                                {"mlp_alpha_factor", "mlp_beta_factor"}};

void parse_factors(const Json& config, const FactorNames& names, ModelConfig& out) {
  const auto read = [&](const FactorKeys& keys, double& stream, double& output) {
    stream = positive_or(config, keys.stream, 1.0);
    output = positive_or(config, keys.output, 1.0);
  };
  BlockConfig& block = out.block;
  block.norm_place = NormPlace::carried;
  StreamFactors& factors = block.stream_factors;
  read(names.attention, factors.attention, block.attention_out_multiplier);
  read(names.state, factors.state, out.recurrence->multipliers.out);
  read(names.feed_forward, factors.feed_forward, out.experts->multiplier);
}

void parse_lightning(const Json& config, ModelConfig& out) {
  RecurrenceConfig& state = out.recurrence.emplace();
  state.update = StateUpdate::add;
  state.norm = StateNorm::whole;
  state.gate = Activation::sigmoid;
  state.norm_eps = 1e-6;  // transformers' default, which the model does not replace
  state.fixed_decays = true;
  state.least_step = state.most_step = 1.0;
  state.k_heads = state.v_heads = out.n_heads;
  const auto size = config.find("head_dim");
  const int64_t head_dim = size ? size->as_int() : out.dim / out.n_heads;
  if (head_dim > kMostStateRows) {
    fail(size ? size->where() : config.where(), ": heads have ", head_dim, " elements, expected ",
         kMostStateRows, " at most");
  }
  state.k_dim = state.v_dim = head_dim;
}

void parse_minimax_experts(const Json& config, ModelConfig& out) {
  parse_experts(config, {{"num_local_experts", "num_experts"}, "intermediate_size"}, out);
  if (!out.experts) config.at("num_local_experts");
  out.experts->routing.normalise = true;
}

void parse_layers(const Json& config, const FactorNames& names, ModelConfig& out) {
  config.at("num_key_value_heads");
  if (const auto window = config.find("sliding_window")) {
    fail(window->where(), ": is ", window->brief(),
         ": a sliding window is not supported in this architecture");
  }
  if (!is_on(config, "postnorm")) {
    fail(config.at("postnorm").where(),
         ": is false: a stream that goes on without its norm is not supported");
  }
  parse_lightning(config, out);
  parse_minimax_experts(config, out);
  parse_factors(config, names, out);
}

// Published files: their own code reads these keys.
void parse_published(const Json& config, ModelConfig& out) {
  config.at("attn_type_list");
  config.at("postnorm");  // missing, it means false
  if (const int64_t heads = out.n_heads; (heads & (heads - 1)) != 0) {
    const Json said = config.at("num_attention_heads");
    fail(said.where(), ": is ", said.brief(),
         ", expected a power of 2: runtimes differ in the decays of other numbers of heads");
  }
  if (const auto shared = config.find("shared_intermediate_size");
      shared && shared->as_int() != 0) {
    fail(shared->where(), ": is ", shared->brief(), ": a shared expert is not supported here");
  }
  if (const auto rotated = config.find("rotary_dim")) {
    const int64_t size = in_range(*rotated, 2, out.head_dim());
    if (size % 2 != 0) fail(rotated->where(), ": is ", size, ", expected an even number");
    out.ropes[0].rotary_dim = size == out.head_dim() ? 0 : size;
  }
  parse_layers(config, kPublished, out);
}

// Transformers goes by layer_types alone. Other keys may not choose other layers.
void check_layer_types(const Json& config, const ModelConfig& model) {
  const auto kinds = config.find("layer_types");
  if (kinds && kinds->size() != model.layers.size()) {
    fail(kinds->where(), ": has ", count_of(kinds->size(), "layer type"), ", expected ",
         model.n_layers());
  }
  for (int64_t i = 0; i < model.n_layers(); ++i) {
    const bool full = kinds ? (*kinds)[static_cast<size_t>(i)].as_string() == "full_attention"
                            : i % 2 == 0;  // the default of transformers
    if (full == model.attends(i)) continue;
    fail(kinds ? kinds->where() : config.where(), ": layer ", i, " has ",
         full ? "softmax attention" : "lightning attention", " by layer_types",
         kinds ? "" : ", which is missing",
         ", and another key says otherwise: ", "runtimes differ in which they go by");
  }
}

// A published key beside the one that transformers reads must say the same.
void check_factor(const Json& config, const char* saved, const char* published) {
  const double taken = positive_or(config, saved, 1.0);
  const auto said = config.find(published);
  if (!said || said->as_double() == taken) return;
  fail(said->where(), ": is ", said->brief(), ", expected ", taken, ", which is ", saved,
       ": runtimes differ in which they go by");
}

void check_factors(const Json& config, const FactorKeys& saved, const FactorKeys& published) {
  check_factor(config, saved.stream, published.stream);
  check_factor(config, saved.output, published.output);
}

// Files that transformers saves. It reads none of the published keys, and other runtimes do.
void parse_saved(const Json& config, ModelConfig& out) {
  check_layer_types(config, out);
  check_factors(config, kSaved.attention, kPublished.attention);
  check_factors(config, kSaved.state, kPublished.state);
  check_factors(config, kSaved.feed_forward, kPublished.feed_forward);
  if (const auto rotated = config.find("rotary_dim");
      rotated && rotated->as_int() != out.head_dim()) {
    fail(rotated->where(), ": is ", rotated->brief(), ", expected ", out.head_dim(),
         ": transformers rotates whole heads");
  }
  config.find("block_size");  // rows that transformers computes at once
  parse_layers(config, kSaved, out);
}

TensorRows lightning() {
  return {{"model.layers.{}.self_attn.qkv_proj",
           {state_q, state_k, state_v},
           TensorLayout::by_state_head},
          {"model.layers.{}.self_attn.output_gate", {state_gate}},
          {"model.layers.{}.self_attn.norm", {state_norm}},
          {"model.layers.{}.self_attn.out_proj", {state_out}}};
}

std::span<const TensorRow> minimax_01_tensors() {
  static const TensorRows rows = joined(
      {opening(), qkv(), attention_out(), lightning(), next_norm(), mixtral_experts(), ending()});
  return rows;
}

constexpr std::array<std::string_view, 1> kText01Types = {"MiniMaxText01"},
                                          kM1Types = {"MiniMaxM1"};

Architecture row(const char* name, const char* model_type, const char* summary) {
  return {.name = name,
          .model_type = model_type,
          .summary = summary,
          .states = true,
          .parse = parse_published,
          .tensors = minimax_01_tensors(),
          .activations = kSilu,
          .rope = {.theta = 1e6}};
}

}  // namespace

Architecture minimax_01() {
  Architecture saved = row("MiniMaxForCausalLM", "minimax", "MiniMax Text 01");
  saved.parse = parse_saved;
  return saved;
}

Architecture minimax_text_01() {
  Architecture published = row("MiniMaxText01ForCausalLM", "minimax_text_01", "MiniMax Text 01");
  published.more_types = kText01Types;
  return published;
}

Architecture minimax_m1() {
  Architecture published = row("MiniMaxM1ForCausalLM", "minimax_m1", "MiniMax M1");
  published.more_types = kM1Types;
  return published;
}

}  // namespace fp8kv
