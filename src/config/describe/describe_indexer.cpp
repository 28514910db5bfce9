#include "config/describe/describe_indexer.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/describe/describe_pools.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

// Bytes of one indexer key: E4M3 codes, with an F32 scale for each block of 128. The latent cache's
// format does not matter. Sources: vLLM's DeepseekV32IndexerCache and SGLang's
// index_k_with_scale_buffer.
int64_t key_bytes(int64_t head_dim) {
  return head_dim + (head_dim + 127) / 128 * 4;
}

// Whether each layer's indexer chooses tokens itself; else the layer reuses the choice of the last
// layer that did. As in transformers' GlmMoeDsaConfig, the config has a list, a pattern of letters,
// or a step: every index_topk_freq-th layer from index_skip_topk_offset on. HY V4 has a list, or
// the first layer chooses, and every fourth from the second on. In other families every layer
// chooses.
std::vector<bool> choosing_layers(const Json& text, int64_t n_layers) {
  std::vector<bool> chooses(static_cast<size_t>(n_layers), true);
  const auto check = [&](const Json& member, size_t count) {
    if (count == chooses.size()) return;
    fail(member.where(), ": is ", member.brief(), ", expected one for each of ", n_layers,
         " layers");
  };
  const auto frequency = text.find("index_topk_freq"), offset = text.find("index_skip_topk_offset");
  const auto pattern = text.find("index_topk_pattern");
  if (const auto types = text.find("indexer_types")) {
    check(*types, types->is_array() ? types->size() : 0);
    for (size_t i = 0; i < chooses.size(); ++i) chooses[i] = (*types)[i].as_string() == "full";
  } else if (text.get_string("model_type", "").starts_with("hy_v4")) {
    for (size_t i = 1; i < chooses.size(); ++i) chooses[i] = (i - 1) % 4 == 0;
  } else if (pattern) {
    const std::string letters = pattern->as_string();
    check(*pattern, letters.size());
    for (size_t i = 0; i < chooses.size(); ++i) chooses[i] = letters[i] == 'F';
  } else if (frequency) {
    const int64_t every = std::max<int64_t>(frequency->as_int(), 1);
    const int64_t first = offset ? offset->as_int() : 2;
    for (int64_t i = 0; i < n_layers; ++i) {
      chooses[static_cast<size_t>(i)] = std::max<int64_t>(i - first + 1, 0) % every == 0;
    }
  }
  return chooses;
}

bool is_minimax_m3(const Json& text) {
  return text.get_string("model_type", "").starts_with("minimax_m3");
}

// MiniMax M3: which layers have an indexer, from layer_types or, in published configs, a list of 0
// and 1. Empty: none has.
std::vector<bool> indexed_layers(const Json& text) {
  std::vector<bool> indexed;
  const auto types = text.find("layer_types");
  for (size_t i = 0; types && i < types->size(); ++i) {
    indexed.push_back((*types)[i].as_string() == "minimax_m3_sparse");
  }
  const auto sparse = text.find("sparse_attention_config");
  const auto listed = sparse ? sparse->find("sparse_attention_freq") : std::nullopt;
  for (size_t i = 0; listed && i < listed->size(); ++i) {
    const bool own = in_range((*listed)[i], 0, 1) == 1;
    if (!types) indexed.push_back(own);
    if (!types || i >= indexed.size() || indexed[i] == own) continue;
    fail((*listed)[i].where(), ": is ", (*listed)[i].brief(), ", but layer_types says otherwise");
  }
  return indexed;
}

// MiniMax M3. vLLM stores an indexer's keys in 16 bits unless told otherwise.
void describe_indexed(const Json& text, ModelDescription& out) {
  constexpr int64_t kBytes = 2;
  const std::vector<bool> indexed = indexed_layers(text);
  if (indexed.size() != out.layers.size()) {
    fail(text.where(), ": says of ", count_of(indexed.size(), "layer"),
         " whether it has an indexer, expected ", out.layers.size());
  }
  const int64_t bytes = kBytes * index_number(text, "index_head_dim", "sparse_index_dim", 128);
  const int64_t seen = index_number(text, "index_topk_blocks", "sparse_topk_blocks", 16) *
                       index_number(text, "index_block_size", "sparse_block_size", 128);
  for (size_t i = 0; i < indexed.size(); ++i) {
    out.layers[i].index_bytes = indexed[i] ? bytes : 0;
    out.layers[i].most_seen = indexed[i] ? seen : 0;
  }
}

bool is_qwen4(const Json& text) {
  return text.get_string("model_type", "").starts_with("qwen4_exp");
}

// Qwen 4 Exp. vLLM stores one key of a block in 16 bits, unless told otherwise.
void describe_pooled(const Json& text, ModelDescription& out) {
  constexpr int64_t kBytes = 2;
  text.at("indexer_n_heads");
  const int64_t block = in_range(text.at("indexer_compress_ratio"), 2, kLongestContext);
  const int64_t bytes = kBytes * in_range(text.at("indexer_head_dim"), kLargestDim);
  const int64_t budget = in_range(text.at("indexer_budget"), kLongestContext);
  for (LayerDescription& layer : out.layers) {
    layer.index_bytes = std::max<int64_t>(1, bytes / block);
    layer.most_seen = budget + block - 1;
  }
}

// GLM-5 Next. vLLM stores one key of a block.
void describe_gated_keys(const Json& text, ModelDescription& out) {
  const int64_t block = in_range(text.at("index_kpool"), 2, kLongestContext);
  const int64_t bytes = key_bytes(in_range(text.at("index_head_dim"), kLargestDim));
  const int64_t seen = in_range(text.at("index_topk"), kLongestContext);
  const std::vector<bool> chooses = choosing_layers(text, out.n_layers());
  for (size_t i = 0; i < out.layers.size(); ++i) {
    out.layers[i].index_bytes = chooses[i] ? std::max<int64_t>(1, bytes / block) : 0;
    out.layers[i].most_seen = seen + block - 1;
  }
}

}  // namespace

bool is_glm5_next(const Json& text) {
  return text.get_string("model_type", "") == "glm5_next_text";
}

int64_t index_number(const Json& text, const char* key, const char* published, int64_t usual) {
  const auto sparse = text.find("sparse_attention_config");
  const auto inside = sparse ? sparse->find(published) : std::nullopt, own = text.find(key);
  check_same(own, inside);
  const auto number = own ? own : inside;
  return number ? in_range(*number, kLargestDim) : usual;
}

bool has_indexer(const Json& text) {
  const std::string type = text.get_string("model_type", "");
  if (type == "deepseek_v32" || type == "glm_moe_dsa" || type.starts_with("hy_v4")) return true;
  if (is_minimax_m3(text)) {
    const std::vector<bool> indexed = indexed_layers(text);
    return std::find(indexed.begin(), indexed.end(), true) != indexed.end();
  }
  if (is_qwen4(text) || is_glm5_next(text) || has_pools(text)) return true;
  const auto indexer = find_any(text, {"index_topk", "index_n_heads"});
  if (!indexer) return false;
  fail(indexer->where(), ": is ", indexer->brief(),
       ": a sparse indexer, which chooses what each token sees, is not known of model_type ",
       quote(type), ", expected 'deepseek_v32', 'glm_moe_dsa', 'hy_v4' or 'minimax_m3_vl_text'");
}

void describe_indexer(const Json& text, ModelDescription& out) {
  if (is_minimax_m3(text)) return describe_indexed(text, out);
  if (is_qwen4(text)) return describe_pooled(text, out);
  if (is_glm5_next(text)) return describe_gated_keys(text, out);
  if (has_pools(text)) return describe_pools(text, out);
  const int64_t bytes = key_bytes(in_range(text.at("index_head_dim"), kLargestDim));
  const std::vector<bool> chooses = choosing_layers(text, out.n_layers());
  const auto seen = text.find("index_topk");
  for (size_t i = 0; i < out.layers.size(); ++i) {
    out.layers[i].index_bytes = chooses[i] ? bytes : 0;
    out.layers[i].most_seen = seen ? in_range(*seen, kLongestContext) : 0;
  }
}

}  // namespace fp8kv
