#include "config/describe/describe_feed_forward.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/describe/block_configs.h"
#include "config/describe/describe_pools.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

// Families whose feed-forward part is two matrices with any activation between them.
constexpr std::array<std::string_view, 16> kPlain = {
    "apertus", "bloom", "falcon",   "gpt2", "gpt_bigcode", "gpt_neox",   "gptj",      "jais2",
    "mpt",     "opt",   "nanochat", "phi",  "nemotron",    "nemotron_h", "persimmon", "starcoder2"};

// Families with experts whose first layer has none, even if their configs do not say so.
constexpr std::array<std::string_view, 9> kOneDense = {"afmoe",         "axk1",       "exaone_moe",
                                                       "glm4_moe_lite", "hy_v3",      "laguna",
                                                       "mimo_v2_flash", "sarvam_mla", "sarvam_moe"};

FeedForward dense_part(const Json& text) {
  const std::string type = text.get_string("model_type", "");
  if (std::find(kPlain.begin(), kPlain.end(), type) != kPlain.end()) return FeedForward::plain;
  const std::string activation = text.get_string("hidden_act", "");
  const bool gated = activation == "silu" || activation == "swigluoai" || activation == "swish" ||
                     type.starts_with("gemma") || type.starts_with("lfm2") ||
                     type.starts_with("lfm3") || type.starts_with("muse_glimmer") ||
                     type == "longcat_flash" || type == "jamba" || type == "zamba2";
  return gated ? FeedForward::gated : FeedForward::unknown;
}

bool has_experts(const Json& text) {
  // Gemma 4 has a switch for experts, which is off by default.
  if (text.get_string("model_type", "").starts_with("gemma4")) {
    return text.get_bool("enable_moe_block", false);
  }
  const auto count = find_any(text, kExpertCount);
  return count && count->as_double() > 1;
}

bool lists(const Json& text, const char* key, int64_t layer) {
  const auto list = text.find(key);
  if (list && !list->is_array()) {
    fail(list->where(), ": is ", list->brief(), ", expected an array of layer numbers");
  }
  for (size_t i = 0; list && i < list->size(); ++i) {
    if ((*list)[i].as_int() == layer) return true;
  }
  return false;
}

bool is_ernie(const Json& text) {
  const std::string type = text.get_string("model_type", "");
  return type == "ernie4_5_moe" || type == "ernie4_5_moe_vl" || type == "ernie4_5_vl_moe" ||
         type == "ernie4_5_vl_moe_text";
}

// ERNIE has experts from a first layer to a last one, in each of them or in every second and so on.
bool is_expert_layer_of_ernie(const Json& text, int64_t layer) {
  const int64_t end = text.get_int("moe_layer_end_index", -1);
  const int64_t interval = text.get_int("moe_layer_interval", 1);
  return layer >= text.get_int("moe_layer_start_index", 1) && (end == -1 || layer <= end) &&
         (interval < 1 || (layer + 1) % interval == 0);
}

// Whether this layer of a model with experts has experts itself.
bool is_expert_layer(const Json& text, int64_t layer) {
  if (has_pools(text)) return true;
  if (const auto types = text.find("mlp_layer_types")) {
    const auto i = static_cast<size_t>(layer);
    return i < types->size() && (*types)[i].as_string() == "sparse";
  }
  const std::string type = text.get_string("model_type", "");
  const auto each = text.find("moe_layer_freq");
  const bool reads_each = type == "mimo_v2" || type.starts_with("minimax_m3");
  if (each && each->is_array() && reads_each) {
    const auto i = static_cast<size_t>(layer);
    return i < each->size() && in_range((*each)[i], 0, 1) == 1;
  }
  if (is_ernie(text)) return is_expert_layer_of_ernie(text, layer);
  if (type == "longcat_flash") return layer % 2 == 0;
  if (text.has("moe_layers")) return lists(text, "moe_layers", layer);
  const bool one = std::find(kOneDense.begin(), kOneDense.end(), type) != kOneDense.end();
  const bool lfm2 = type == "lfm2_moe";
  const bool named = type == "afmoe" || lfm2;
  const char* key_of_dense = named ? "num_dense_layers" : "first_k_dense_replace";
  if (layer < text.get_int(key_of_dense, lfm2 ? 2 : one ? 1 : 0)) return false;
  if (lists(text, "mlp_only_layers", layer)) return false;
  for (const char* key : {"decoder_sparse_step", "interleave_moe_layer_step"}) {
    const int64_t step = text.get_int(key, 1);
    if (step > 0 && (layer + 1) % step != 0) return false;
  }
  const int64_t period = text.get_int("expert_layer_period", 1);
  return period < 1 || layer % period == text.get_int("expert_layer_offset", 0);
}

// Nemotron-H: most layers are attention or Mamba without a feed-forward part. The names are those
// of layers_block_type.
FeedForward part_of_block(std::string_view block) {
  if (block == "hybrid") return FeedForward::gated;  // Zamba 2
  return block == "E" || block == "moe"   ? FeedForward::experts
         : block == "-" || block == "mlp" ? FeedForward::plain
                                          : FeedForward::none;
}

// The kind of each layer of a Nemotron-H, from either spelling; empty if the config has no such
// list.
std::vector<std::string> blocks_of(const Json& text) {
  std::vector<std::string> blocks;
  for (const char letter : text.get_string("hybrid_override_pattern", "")) {
    blocks.emplace_back(1, letter);
  }
  const auto listed = text.find("layers_block_type");
  const std::string type = text.get_string("model_type", "");
  if (!blocks.empty() || !listed || (type != "nemotron_h" && type != "zamba2")) {
    return blocks;
  }
  for (size_t i = 0; i < listed->size(); ++i) blocks.push_back((*listed)[i].as_string());
  return blocks;
}

void describe_blocks(const Json& text, ModelDescription& out) {
  const std::vector<BlockShape> blocks = block_shapes(text, out);
  for (size_t i = 0; i < blocks.size(); ++i) {
    const bool has_part = blocks[i].hidden_dim > 0;
    out.layers[i].feed_forward = has_part ? FeedForward::gated : FeedForward::none;
  }
}

}  // namespace

void describe_feed_forward(const Json& text, ModelDescription& out) {
  const FeedForward dense = dense_part(text);
  const bool experts = has_experts(text);
  if (has_block_configs(text)) return describe_blocks(text, out);
  const std::vector<std::string> blocks = blocks_of(text);
  for (int64_t i = 0; i < out.n_layers(); ++i) {
    const auto at = static_cast<size_t>(i);
    FeedForward& part = out.layers[at].feed_forward;
    part = experts && is_expert_layer(text, i) ? FeedForward::experts : dense;
    if (blocks.size() == out.layers.size()) part = part_of_block(blocks[at]);
  }
}

}  // namespace fp8kv
