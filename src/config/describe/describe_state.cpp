#include "config/describe/describe_state.h"

#include <optional>

#include "config/describe/usual_mixings.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

// The keys of one family's config. A head's state is rows x columns. The convolution covers the
// columns of all heads, and the rows of each group twice.
struct StateKeys {
  const char* heads;
  const char* rows;
  const char* columns;
  const char* groups;
  const char* conv_width;
};

constexpr StateKeys kStateKeys[] = {
    {"linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim",
     "linear_num_key_heads", "linear_conv_kernel_dim"},  // gated DeltaNet
    {"linear_num_heads", "linear_head_dim", "linear_head_dim", "linear_num_heads",
     "linear_conv_kernel_dim"},  // Kimi Delta Attention
    {"num_heads", "head_dim", "head_dim", "num_heads", "short_conv_kernel_size"},  // likewise
    {"num_attention_heads", "head_dim", "head_dim", "num_attention_heads",
     "short_conv_kernel_size"},  // likewise: Ling 3
    {"mamba_n_heads", "mamba_d_state", "mamba_d_head", "mamba_n_groups", "mamba_d_conv"},
    {"n_mamba_heads", "mamba_d_state", "mamba_headdim", "mamba_ngroups",
     "mamba_d_conv"},  // Zamba 2
    {"mamba_num_heads", "ssm_state_size", "mamba_head_dim", "n_groups", "conv_kernel"},
};

// Columns of a head, from the total width. Granite 4, Bamba and Falcon-H1 may give no more than
// that.
uint64_t columns_by_width(const Json& text, uint64_t heads, int64_t most) {
  const auto dim = find_any(text, kDim), expand = text.find("mamba_expand");
  const auto width = text.find("mamba_d_ssm");  // Falcon-H1
  if (heads > 0 && width) return static_cast<uint64_t>(in_range(*width, most)) / heads;
  if (heads == 0 || !dim || !expand) return 0;
  return static_cast<uint64_t>(in_range(*dim, most) * in_range(*expand, most)) / heads;
}

// LFM2: a convolution without a state keeps its last tokens alone.
uint64_t bytes_of_tokens(const Json& text, const Json& width) {
  constexpr uint64_t kHalf = 2;
  const auto dim = find_any(text, kDim);
  if (!dim) return 0;
  return static_cast<uint64_t>(in_range(width, int64_t{1} << 20) - 1) *
         static_cast<uint64_t>(in_range(*dim, kLargestDim)) * kHalf;
}

std::optional<uint64_t> bytes_by(const Json& text, const StateKeys& keys) {
  // Far above any model, and products of three such numbers do not overflow.
  constexpr int64_t kMost = int64_t{1} << 20;
  const auto number = [&](const char* key) -> uint64_t {
    const auto found = text.find(key);
    if (!found || !found->is_number()) return 0;
    return static_cast<uint64_t>(in_range(*found, kMost));
  };
  const uint64_t heads = number(keys.heads), rows = number(keys.rows);
  const auto said = text.find(keys.columns);
  const bool by_width = said ? said->is_string() : is_zamba2(text);
  const uint64_t columns = by_width ? columns_by_width(text, heads, kMost) : number(keys.columns);
  const uint64_t groups = number(keys.groups);
  const uint64_t width = number(keys.conv_width);
  if (heads == 0 || rows == 0 || columns == 0 || groups == 0 || width == 0) return std::nullopt;
  constexpr uint64_t kF32 = 4, kHalf = 2;
  return heads * rows * columns * kF32 +
         (width - 1) * (heads * columns + 2 * groups * rows) * kHalf;
}

// Jamba: a state of each channel, and the last tokens of the channels alone.
std::optional<uint64_t> bytes_of_channels(const Json& text) {
  constexpr int64_t kMost = int64_t{1} << 20;
  constexpr uint64_t kF32 = 4, kHalf = 2;
  const auto dim = find_any(text, kDim), expand = text.find("mamba_expand");
  const auto rows = text.find("mamba_d_state"), width = text.find("mamba_d_conv");
  if (text.get_string("model_type", "") != "jamba" || !dim || !expand || !rows || !width) {
    return std::nullopt;
  }
  const auto channels =
      static_cast<uint64_t>(in_range(*dim, kMost) * in_range(*expand, int64_t{1} << 10));
  return channels * (static_cast<uint64_t>(in_range(*rows, kMost)) * kF32 +
                     static_cast<uint64_t>(in_range(*width, kMost) - 1) * kHalf);
}

// MiniMax Text 01 and Ling 2.5: heads of attention, and no convolution.
std::optional<uint64_t> bytes_of_lightning(const Json& text) {
  constexpr int64_t kMost = int64_t{1} << 20;
  constexpr uint64_t kF32 = 4;
  const std::string type = text.get_string("model_type", "");
  const bool published = type == "minimax_text_01" || type == "MiniMaxText01" ||
                         type == "minimax_m1" || type == "MiniMaxM1";
  const bool ling = type == "bailing_hybrid" && !text.has("short_conv_kernel_size") &&
                    !text.has("linear_conv_kernel_dim");
  if (type != "minimax" && !published && !ling) return std::nullopt;
  const auto heads = text.find("num_attention_heads"), size = text.find("head_dim");
  const auto dim = find_any(text, kDim);
  if (!heads || (!size && !dim)) return std::nullopt;
  const auto count = static_cast<uint64_t>(in_range(*heads, kMost));
  const uint64_t columns = size ? static_cast<uint64_t>(in_range(*size, kMost))
                                : static_cast<uint64_t>(in_range(*dim, kMost)) / count;
  return count * columns * columns * kF32;
}

}  // namespace

uint64_t state_bytes_of(const Json& text) {
  if (const auto width = text.find("conv_L_cache")) return bytes_of_tokens(text, *width);
  if (const auto linear = text.find("linear_attn_config")) return state_bytes_of(*linear);
  if (const auto bytes = bytes_of_channels(text)) return *bytes;
  if (const auto bytes = bytes_of_lightning(text)) return *bytes;
  for (const StateKeys& keys : kStateKeys) {
    if (const auto bytes = bytes_by(text, keys)) return *bytes;
  }
  return 0;
}

void add_short_conv_states(const Json& text, ModelDescription& out) {
  if (text.get_string("model_type", "") != "inkling_text") return;
  constexpr int64_t kHalf = 2;
  const auto said = text.find("conv_kernel_size");
  const int64_t before = (said ? in_range(*said, kLongestContext) : 4) - 1;
  for (LayerDescription& layer : out.layers) {
    const int64_t channels = layer.n_kv_heads * (layer.k_head_dim + layer.v_head_dim) + 2 * out.dim;
    layer.state_bytes = static_cast<uint64_t>(before * channels * kHalf);
  }
}

void add_ngram_states(const Json& text, ModelDescription& out) {
  const auto ids = text.find("ple_layer_ids");
  if (!ids || !text.get_string("model_type", "").starts_with("qwen4_exp")) return;
  constexpr int64_t kHalf = 2;
  const auto number = [&](const char* key, int64_t usual) {
    const auto said = text.find(key);
    return said ? in_range(*said, kLongestContext) : usual;
  };
  const int64_t width = number("ple_conv_kernel_size", 4);
  const int64_t longest = number("ngram_size", 3), streams = number("hc_count", 4);
  for (size_t i = 0; i < ids->size(); ++i) {
    const auto layer = static_cast<size_t>(in_range((*ids)[i], out.n_layers()) - 1);
    out.layers[layer].state_bytes +=
        static_cast<uint64_t>((width - 1) * longest * streams * out.dim * kHalf);
  }
}

}  // namespace fp8kv
