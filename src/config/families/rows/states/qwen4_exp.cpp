// Qwen 4 Exp: layers of Qwen 3.5 with experts, connected by hyper-connections that gate each
// element of several streams. An indexer with pooled keys chooses what attention sees, and some
// layers add embeddings of n-grams.
#include <algorithm>
#include <set>
#include <string>

#include "base/error.h"
#include "config/families/groups/state_architectures.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

// Far above any model: the prime sizes of all tables are searched for.
constexpr int64_t kMostNgramTables = 4096;

// Qwen 3.5 normalises the weights of the chosen experts, whatever its config says.
void parse_qwen4_router(const Json& config, ModelConfig& out) {
  if (out.experts) out.experts->routing.normalise = is_on(config, "norm_topk_prob");
}

void parse_output_gate(const Json& config, ModelConfig& out) {
  const auto gate = config.find("output_gate_type");
  const std::string name = gate ? gate->as_string() : "silu";
  if (name != "silu" && name != "sigmoid") {
    fail(gate->where(), ": is ", gate->brief(), ", expected 'silu' or 'sigmoid'");
  }
  out.recurrence->gate = name == "silu" ? Activation::silu : Activation::sigmoid;
}

void parse_streams(const Json& config, ModelConfig& out) {
  HyperConfig& hyper = out.hyper.emplace();
  const auto count = config.find("hc_count"), rank = config.find("hc_lowrank");
  hyper.count = count ? in_range(*count, 2, kMostStreams) : 4;
  hyper.rank = rank ? in_range(*rank, kLargestDim) : 320;
  out.block.norm_place = NormPlace::none;
}

void parse_qsa(const Json& config, ModelConfig& out) {
  const int64_t rotated =
      out.ropes.front().rotary_dim > 0 ? out.ropes.front().rotary_dim : out.head_dim();
  const Json ratio = config.at("indexer_compress_ratio"), budget = config.at("indexer_budget");
  const Json head_dim = config.at("indexer_head_dim"), kv_heads = config.at("indexer_kv_heads");
  IndexerConfig indexer{.n_heads = in_range(config.at("indexer_n_heads"), kLargestDim),
                        .head_dim = in_range(head_dim, kLargestDim),
                        .rope_dim = rotated,
                        .block = in_range(ratio, 2, kLongestContext),
                        .pooled = true};
  const int64_t tokens = in_range(budget, kLongestContext);
  indexer.top_k = tokens / indexer.block;
  if (tokens % indexer.block != 0) {
    fail(budget.where(), ": is ", tokens,
         ", expected a multiple of indexer_compress_ratio, which is ", indexer.block);
  }
  if (kv_heads.as_int() != 1) fail(kv_heads.where(), ": is ", kv_heads.brief(), ", expected 1");
  if (indexer.head_dim < rotated || indexer.head_dim % 2 != 0) {
    fail(head_dim.where(), ": is ", indexer.head_dim, ", expected an even number from the ",
         rotated, " elements on that rotate");
  }
  const bool any = std::any_of(out.layers.begin(), out.layers.end(),
                               [](const auto& layer) { return layer.index_bytes > 0; });
  if (any && indexer.most_tokens() < out.max_seq_len) {
    out.indexer = indexer;
    return;
  }
  for (LayerDescription& layer : out.layers) layer.index_bytes = 0;
}

// The first id of a list, as transformers and vLLM take it. Hashes need a token of the vocabulary.
int32_t gap_of(const Json& config, int64_t vocab_size) {
  const Json eos = config.at("eos_token_id");
  const Json id = eos.is_array() ? eos[0] : eos;
  return static_cast<int32_t>(in_range(id, 0, vocab_size - 1));
}

// Throws unless the tables divide a token's row, and are few enough.
void check_tables(const Json& config, const NgramConfig& ngrams) {
  const auto layers = static_cast<int64_t>(ngrams.layers.size());
  if (ngrams.dim % ngrams.tables() != 0) {
    fail(config.where(), ": ple_embed_dim is ", ngrams.dim, ", expected a multiple of the ",
         ngrams.tables(), " tables of ngram_size and heads_per_ngram");
  }
  if (ngrams.tables() <= kMostNgramTables / layers) return;
  fail(config.where(), ": ngram_size and heads_per_ngram give ", ngrams.tables(),
       " tables in each of ", count_of(ngrams.layers.size(), "layer"), ", expected ",
       kMostNgramTables, " in all at most");
}

void parse_ngrams(const Json& config, ModelConfig& out) {
  const auto number = [&](const char* key, int64_t least, int64_t usual) {
    const auto said = config.find(key);
    return said ? in_range(*said, least, kLongestContext) : usual;
  };
  NgramConfig ngrams{.longest = number("ngram_size", 2, 3),
                     .heads = number("heads_per_ngram", 1, 8),
                     .dim = number("ple_embed_dim", 1, out.dim),
                     .least_rows = number("ngram_vocab_size_base", 2, 20'000'000),
                     .multiple = number("make_ngram_vocab_size_divisible_by", 1, 128),
                     .files = number("split_ngram_parts", 1, 512),
                     .seed = number("seed", 0, 1234),
                     .vocab_size = out.vocab_size,
                     .conv_width = number("ple_conv_kernel_size", 1, 4)};
  const auto ids = config.find("ple_layer_ids");
  if (!ids || ids->size() == 0) return;
  std::set<int64_t> layers;
  for (size_t i = 0; i < ids->size(); ++i) layers.insert(in_range((*ids)[i], out.n_layers()) - 1);
  ngrams.layers.assign(layers.begin(), layers.end());
  for (const int64_t layer : ngrams.layers) {
    if (out.keeps_state(layer)) continue;
    fail(ids->where(), ": names layer ", layer + 1, ", expected layers of linear attention alone");
  }
  ngrams.gap = gap_of(config, out.vocab_size);
  check_tables(config, ngrams);
  for (const int64_t layer : ngrams.layers) {
    ngrams.rows.push_back(NgramTables(ngrams, layer).rows());
    if (ngrams.rows.back() % ngrams.files == 0) continue;
    fail(config.where(), ": split_ngram_parts is ", ngrams.files, ", expected a divisor of the ",
         ngrams.rows.back(), " rows of layer ", layer);
  }
  out.ngrams = std::move(ngrams);
}

void parse_qwen4_exp(const Json& config, ModelConfig& out) {
  config.find("number_of_conv_states");  // follows from ple_layer_ids
  // The defaults of Qwen 3.5 are others.
  for (const char* key : {"num_experts", "num_experts_per_tok"}) config.at(key);
  parse_qwen3_5_moe(config, out);
  parse_qwen4_router(config, out);
  parse_output_gate(config, out);
  parse_streams(config, out);
  parse_qsa(config, out);
  parse_ngrams(config, out);
}

TensorRows connections() {
  return {{"model.layers.{}.attn_hyper_connection.hc_norm", {hyper_attn_norm}},
          {"model.layers.{}.attn_hyper_connection.input_mix_weight_down", {hyper_attn_down}},
          {"model.layers.{}.attn_hyper_connection.input_mix_weight_up", {hyper_attn_up}},
          {"model.layers.{}.attn_hyper_connection.block_inject_weight", {hyper_attn}},
          {"model.layers.{}.mlp_hyper_connection.hc_norm", {hyper_ffn_norm}},
          {"model.layers.{}.mlp_hyper_connection.input_mix_weight_down", {hyper_ffn_down}},
          {"model.layers.{}.mlp_hyper_connection.input_mix_weight_up", {hyper_ffn_up}},
          {"model.layers.{}.mlp_hyper_connection.block_inject_weight", {hyper_ffn}},
          {"model.hyper_connection_mixer.hc_norm", {hyper_head_norm}},
          {"model.hyper_connection_mixer.input_mix_weight_down", {hyper_head_down}},
          {"model.hyper_connection_mixer.input_mix_weight_up", {hyper_head_up}}};
}

TensorRows ngram_rows() {
  return {{"model.layers.{}.ple.ple_embedding.ngram_embedding.shard_{f}", {ngram_table}},
          {"model.layers.{}.ple.key_proj", {ngram_key}},
          {"model.layers.{}.ple.value_proj", {ngram_value}},
          {"model.layers.{}.ple.norm_key", {ngram_key_norm}},
          {"model.layers.{}.ple.norm_query", {ngram_query_norm}},
          {"model.layers.{}.ple.norm_conv", {ngram_conv_norm}},
          {"model.layers.{}.ple.conv1d", {ngram_conv}}};
}

std::span<const TensorRow> qwen4_exp_tensors() {
  static const TensorRows rows =
      joined({{{"model.embed_tokens", {embedding}}},
              ngram_rows(),
              gated_qkv(),
              qk_norms(),
              {{"model.layers.{}.self_attn.indexer.index_qk_proj", {index_q, index_k}},
               {"model.layers.{}.self_attn.indexer.q_layernorm", {index_q_norm}},
               {"model.layers.{}.self_attn.indexer.k_layernorm", {index_norm}}},
              attention_out(),
              state_projections(),
              state_rest(),
              {{"model.layers.{}.mlp.gate", {router}}},
              experts_apart(),
              gated_shared_expert(),
              connections(),
              {{"lm_head", {lm_head}}}});
  return rows;
}

std::span<const TensorRow> qwen4_exp_tensors_together() {
  static const TensorRows rows = with_experts(qwen4_exp_tensors(), experts_together());
  return rows;
}

}  // namespace

Architecture qwen4_exp() {
  return {.name = "Qwen4ExpForCausalLM",
          .model_type = "qwen4_exp_text",
          .summary = "Qwen 4 Exp",
          .states = true,
          .parse = parse_qwen4_exp,
          .tensors = qwen4_exp_tensors(),
          .other_tensors = qwen4_exp_tensors_together(),
          .activations = kSilu,
          .hidden_dims = 1,
          .rope = {.part = 0.25, .reads_part = true}};
}

}  // namespace fp8kv
