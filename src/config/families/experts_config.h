// Reads the description of experts in a config.json. Internal to config.
#pragma once

#include "core/model/config.h"
#include "json/json.h"

namespace fp8kv {

// A family's names of the keys for experts.
struct ExpertsKeys {
  std::initializer_list<const char*> count;
  const char* hidden_dim;  // the hidden size of each expert
  const char* per_token = "num_experts_per_tok";
};

// Sets out.experts: the number of experts, their size, and how many each token goes to. Does
// nothing if no layer of `out` has experts. Throws, naming the key, for impossible values.
void parse_experts(const Json& text, const ExpertsKeys& keys, ModelConfig& out);

// Reads the number of groups and topk_group, and checks that the experts divide into such groups.
// REQUIRES out.experts.
void parse_expert_groups(const Json& text, ModelConfig& out, const char* groups_key = "n_group");

// Reads the router of DeepSeek V3, which other families use too: groups, sigmoid scores with a
// choice bias, and norm_topk_prob. REQUIRES out.experts.
void parse_sigmoid_router(const Json& text, ModelConfig& out);

// Sets the router of DeepSeek V3 without groups: sigmoid scores with a choice bias. The chosen
// weights add up to the number under `scale_key`, or to `usual_scale`. REQUIRES out.experts.
void set_plain_sigmoid_router(const Json& text, const char* scale_key, double usual_scale,
                              ModelConfig& out);

// The number that a list has for every layer, or the number itself if it is no list. Throws if
// layers differ.
Json for_all_layers(const Json& number, size_t n_layers);

// Throws unless first_k_dense_replace, by which vLLM goes, makes the same layers dense as
// mlp_layer_types, by which transformers goes. One of both must be there.
void check_first_dense(const Json& config, const ModelConfig& out);

// Throws unless the member is absent or has the value that the architecture uses.
void check_router_says(const Json& text, const char* key, const char* expected);

}  // namespace fp8kv
