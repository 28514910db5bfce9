#include "config/describe/describe_model.h"

#include <algorithm>
#include <concepts>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/describe/assistants.h"
#include "config/describe/describe_feed_forward.h"
#include "config/describe/describe_indexer.h"
#include "config/describe/describe_layers.h"
#include "config/describe/describe_pools.h"
#include "config/describe/describe_state.h"
#include "config/values/config_values.h"
#include "config/values/language_config.h"

namespace fp8kv {
namespace {

// The default in transformers' FalconConfig, since the configs that TII published give no context.
constexpr int64_t kFalconContext = 2048;

// Whether all query heads share one KV head. In Falcon's newer blocks this switch has no effect.
bool is_multi_query(const Json& text) {
  const std::string type = text.get_string("model_type", "");
  if (type != "falcon" && type != "gpt_bigcode") return false;
  return is_on(text, "multi_query") && !text.get_bool("new_decoder_architecture", false);
}

int64_t parse_kv_heads(const Json& text, int64_t n_heads) {
  const auto found = find_any(text, {"num_key_value_heads", "num_kv_heads"});
  if (is_multi_query(text)) return 1;
  if (!found) return n_heads;
  const int64_t kv_heads = in_range(*found, kLargestDim);
  if (n_heads % kv_heads != 0) {
    fail(found->where(), ": is ", kv_heads, ", which does not divide the ", n_heads,
         " attention heads");
  }
  return kv_heads;
}

int64_t parse_head_dim(const Json& text, int64_t n_heads) {
  // The heads of Zamba 2 read two vectors of hidden_size together.
  const bool zamba2 = text.get_string("model_type", "") == "zamba2";
  if (zamba2) return 2 * in_range(text.at("hidden_size"), kLargestDim) / n_heads;
  if (const auto head_dim = text.find("head_dim")) return in_range(*head_dim, kLargestDim);
  const Json dim = at_any(text, kDim);
  const int64_t size = in_range(dim, kLargestDim);
  if (size % n_heads != 0) {
    fail(dim.where(), ": is ", size, ", which the ", n_heads,
         " attention heads do not divide, and there is no head_dim");
  }
  return size / n_heads;
}

// Families with latent attention like DeepSeek V2's, whose layers cache nothing else.
constexpr std::string_view kLatentTypes[] = {
    "axk1",       "bailing_hybrid", "deepseek_v2",   "deepseek_v3",    "deepseek_v32",
    "kimi_k2",    "kimi_linear",    "glm4_moe_lite", "glm5_next_text", "glm_moe_dsa",
    "hy_v4",      "hy_v4_vl_text",  "longcat_flash", "minicpm3",       "mistral4",
    "sarvam_mla", "youtu"};

bool has_latent_attention(const Json& text) {
  const auto rank = text.find("kv_lora_rank");
  const std::string type = text.get_string("model_type", "");
  if (!rank && type != "glm5_next_text") return false;
  if (std::find(std::begin(kLatentTypes), std::end(kLatentTypes), type) != std::end(kLatentTypes)) {
    return true;
  }
  fail(rank->where(), ": attention through a latent vector (MLA) is not known of model_type ",
       quote(type), ", expected one of ",
       join(std::vector<std::string>(std::begin(kLatentTypes), std::end(kLatentTypes))));
}

// The one vector that all heads share: the rotated elements, then the latent. head_dim in such a
// config is the rotated size and decides nothing.
LayerDescription latent_layer(const Json& text) {
  LayerDescription layer;
  layer.n_kv_heads = 1;
  layer.v_head_dim = in_range(text.at("kv_lora_rank"), kLargestDim);
  const bool rotates = text.get_string("model_type", "") != "glm5_next_text";
  const Json rotated = text.at("qk_rope_head_dim");
  layer.k_head_dim = layer.v_head_dim + in_range(rotated, rotates ? 1 : 0, kLargestDim);
  layer.v_in_k = true;
  for (const char* key : {"head_dim", "num_key_value_heads"}) text.find(key);
  return layer;
}

LayerDescription layer_with_heads(const Json& text, int64_t n_heads) {
  LayerDescription layer;
  layer.n_kv_heads = parse_kv_heads(text, n_heads);
  layer.k_head_dim = parse_head_dim(text, n_heads);
  const auto v_head_dim = text.find("v_head_dim");
  layer.v_head_dim = v_head_dim ? in_range(*v_head_dim, kLargestDim) : layer.k_head_dim;
  return layer;
}

// Runs `work` and returns the input error that it throws; nullopt if it succeeds.
template <std::invocable Work>
std::optional<Error> input_error_of(const Work& work) {
  try {
    work();
    return std::nullopt;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::input) throw;
    return error;
  }
}

}  // namespace

ModelDescription describe_model(const Json& config) {
  return describe_model(config, language_config(config));
}

ModelDescription describe_model(const Json& config, const Json& text) {
  const bool latent = has_latent_attention(text), indexed = has_indexer(text);
  ModelDescription out;
  out.architecture = architecture_name(config);
  out.model_type = model_type_of(config);
  const int64_t n_layers = layer_count(text);
  out.n_heads = in_range(at_any(text, {"num_attention_heads", "n_head", "num_heads", "n_heads"}),
                         kLargestDim);
  if (const auto dim = find_any(text, kDim)) out.dim = in_range(*dim, kLargestDim);
  const LayerDescription layer = latent            ? latent_layer(text)
                                 : has_pools(text) ? one_row_layer(text)
                                                   : layer_with_heads(text, out.n_heads);
  if (const auto context = find_any(text, kContext)) {
    out.max_seq_len = in_range(*context, kLongestContext);
  } else if (text.get_string("model_type", "") == "falcon") {
    out.max_seq_len = kFalconContext;
  }
  out.layers.assign(static_cast<size_t>(n_layers), layer);
  if (indexed) describe_indexer(text, out);
  if (input_error_of([&] { describe_feed_forward(text, out); })) {
    for (LayerDescription& each : out.layers) each.feed_forward = FeedForward::unknown;
  }
  ModelDescription mixed = out;
  auto unclear = reads_other_cache(config);
  if (!unclear) {
    unclear = input_error_of([&] {
      describe_mixing(text, mixed);
      add_ngram_states(text, mixed);
      add_short_conv_states(text, mixed);
    });
  }
  if (!unclear) return mixed;
  make_unclear(out, *unclear);
  return out;
}

void make_unclear(ModelDescription& model, Error why) {
  for (LayerDescription& layer : model.layers) {
    layer.mixing = Mixing::unknown;
    layer.reach = 0;
    layer.cache_of = -1;
  }
  model.unclear = std::move(why);
}

}  // namespace fp8kv
