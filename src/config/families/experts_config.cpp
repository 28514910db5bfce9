#include "config/families/experts_config.h"

#include <algorithm>

#include "base/error.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

// Far above any model, and far below where ids or counts of experts could overflow.
constexpr int64_t kMostExperts = 4096;

// Marks keys of experts as read. Transformers saves them with default values even if no layer has
// experts.
void ignore_expert_keys(const Json& text, const ExpertsKeys& keys) {
  for (const char* key :
       {keys.hidden_dim, keys.per_token, "first_k_dense_replace", "moe_latent_size",
        "moe_layer_freq", "n_group", "n_shared_experts", "routed_scaling_factor", "scoring_func",
        "shared_expert_intermediate_size", "topk_group", "topk_method"}) {
    text.find(key);
  }
}

}  // namespace

void parse_experts(const Json& text, const ExpertsKeys& keys, ModelConfig& out) {
  const bool any = std::any_of(out.layers.begin(), out.layers.end(), [](const auto& layer) {
    return layer.feed_forward == FeedForward::experts;
  });
  const auto count = find_any(text, keys.count);
  if (count && count->as_int() == 1) {
    fail(count->where(), ": is 1, expected at least 2 experts, or 0 for a model without");
  }
  if (!any) return ignore_expert_keys(text, keys);
  ExpertsConfig& experts = out.experts.emplace();
  const Json number = at_any(text, keys.count);
  experts.count = in_range(number, 2, kMostExperts);
  experts.hidden_dim = in_range(text.at(keys.hidden_dim), kLargestDim);
  const Json per_token = for_all_layers(text.at(keys.per_token), out.layers.size());
  experts.routing.per_token = in_range(per_token, kMostExperts);
  if (experts.routing.per_token > experts.count) {
    fail(per_token.where(), ": is ", per_token.brief(), ", expected no more than the ",
         experts.count, " experts of ", number.where());
  }
}

void parse_expert_groups(const Json& text, ModelConfig& out, const char* groups_key) {
  FP8KV_ASSERT(out.experts);
  Routing& routing = out.experts->routing;
  const int64_t count = out.experts->count;
  const auto groups = text.find(groups_key);
  const auto kept = text.find("topk_group");
  if (groups) routing.groups = in_range(*groups, count);
  if (kept) routing.groups_kept = in_range(*kept, routing.groups);
  const int64_t in_group = count / routing.groups;
  if (count % routing.groups != 0 || (routing.groups > 1 && in_group < 2)) {
    fail(groups->where(), ": is ", groups->brief(), ", expected a number that shares out ", count,
         " experts evenly, at least two to a group");
  }
  if (routing.groups_kept * in_group < routing.per_token) {
    fail(text.where(), ": topk_group leaves ", routing.groups_kept * in_group,
         " experts to choose from, expected at least num_experts_per_tok, which is ",
         routing.per_token);
  }
}

void parse_sigmoid_router(const Json& text, ModelConfig& out) {
  parse_expert_groups(text, out);
  Routing& routing = out.experts->routing;
  routing.score = RouterScore::sigmoid;
  routing.normalise = is_on(text, "norm_topk_prob");
  routing.epsilon = 1e-20;
  out.experts->choice_bias = true;
}

void set_plain_sigmoid_router(const Json& text, const char* scale_key, double usual_scale,
                              ModelConfig& out) {
  FP8KV_ASSERT(out.experts);
  Routing& routing = out.experts->routing;
  out.experts->choice_bias = true;
  routing.score = RouterScore::sigmoid;
  routing.normalise = true;
  routing.scale = positive_or(text, scale_key, usual_scale);
}

Json for_all_layers(const Json& number, size_t n_layers) {
  if (!number.is_array()) return number;
  if (number.size() != n_layers || n_layers == 0) {
    fail(number.where(), ": has ", count_of(number.size(), "number"), ", expected one for each of ",
         count_of(n_layers, "layer"));
  }
  for (size_t i = 1; i < n_layers; ++i) {
    if (number[i].as_int() == number[0].as_int()) continue;
    fail(number[i].where(), ": is ", number[i].brief(), ", expected ", number[0].brief(),
         " like for layer 0: layers that differ in this are not supported");
  }
  return number[0];
}

void check_first_dense(const Json& config, const ModelConfig& out) {
  if (!config.has("mlp_layer_types")) {
    config.at("first_k_dense_replace");
    return;
  }
  const auto dense = config.find("first_k_dense_replace");
  for (int64_t i = 0; dense && i < out.n_layers(); ++i) {
    if ((i >= dense->as_int()) == out.has_experts(i)) continue;
    fail(dense->where(), ": is ", dense->brief(), ", contrary to mlp_layer_types at layer ", i,
         ": runtimes differ in which they go by");
  }
}

void check_router_says(const Json& text, const char* key, const char* expected) {
  check_says(text, key, expected, "router");
}

}  // namespace fp8kv
