#include "config/describe/block_configs.h"

#include <cmath>

#include "base/error.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

constexpr const char* kBlockConfigs = "block_configs";

// vLLM reads none of these. Throws where that would make another model.
void refuse_uncomputed(const Json& part) {
  for (const char* key : {"replace_with_linear", "sparsify", "window_length", "num_sink_tokens",
                          "use_prefill_window_in_sink_attention", "unshifted_sink"}) {
    const auto said = part.find(key);
    if (!said || (said->is_bool() && !said->as_bool())) continue;
    fail(said->where(), ": is ", said->brief(),
         ", expected null or false: runtimes do not compute it");
  }
}

int64_t kv_heads_of(const Json& attention, int64_t n_heads) {
  refuse_uncomputed(attention);
  if (attention.get_bool("no_op", false)) return 0;
  const Json group = attention.at("n_heads_in_group");
  const int64_t size = in_range(group, n_heads);
  if (n_heads % size != 0) {
    fail(group.where(), ": is ", size, ", expected a number that divides ", n_heads, " heads");
  }
  return n_heads / size;
}

// The width is given, or two thirds of a multiple of the model's width, in whole 256.
int64_t hidden_dim_of(const Json& ffn, int64_t dim) {
  refuse_uncomputed(ffn);
  if (ffn.get_bool("no_op", false)) return 0;
  if (const auto activation = ffn.find("hidden_act");
      activation && activation->as_string() != "silu") {
    fail(activation->where(), ": is ", activation->brief(), ", expected \"silu\"");
  }
  if (!ffn.has("ffn_mult")) return in_range(ffn.at("intermediate_size"), kLargestDim);
  const Json factor = ffn.at("ffn_mult");
  constexpr int64_t kStep = 256;
  const double width = 2 * positive_number(factor) * static_cast<double>(dim) / 3;
  if (!(width >= 1 && width <= static_cast<double>(kLargestDim))) {
    fail(factor.where(), ": makes the feed-forward part ", width, " wide, expected 1 to ",
         kLargestDim);
  }
  return (static_cast<int64_t>(width) + kStep - 1) / kStep * kStep;
}

}  // namespace

bool has_block_configs(const Json& text) {
  return text.get_string("model_type", "") == "nemotron-nas" && text.has(kBlockConfigs);
}

std::vector<BlockShape> block_shapes(const Json& text, const ModelDescription& out) {
  const Json blocks = text.at(kBlockConfigs);
  if (!blocks.is_array() || blocks.size() != out.layers.size()) {
    fail(blocks.where(), ": is ", blocks.brief(), ", expected an array of ",
         count_of(out.layers.size(), "object"));
  }
  std::vector<BlockShape> shapes;
  for (size_t i = 0; i < blocks.size(); ++i) {
    shapes.push_back({kv_heads_of(blocks[i].at("attention"), out.n_heads),
                      hidden_dim_of(blocks[i].at("ffn"), out.dim)});
  }
  return shapes;
}

}  // namespace fp8kv
