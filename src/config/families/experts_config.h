// What a config.json says of experts. Internal to config.
#pragma once

#include "core/config.h"
#include "json/json.h"

namespace fp8kv {

// Keys under which a family says it.
struct ExpertsKeys {
  std::initializer_list<const char*> count;
  const char* hidden_dim;  // of each expert
  const char* per_token = "num_experts_per_tok";
};

// The number of experts, their size and how many a token is sent to, into out.experts; nothing
// where no layer of `out` has experts. Throws, naming the key, for what no model can have.
void parse_experts(const Json& text, const ExpertsKeys& keys, ModelConfig& out);

// n_group and topk_group, and whether the experts can be shared out in such groups. REQUIRES
// out.experts.
void parse_expert_groups(const Json& text, ModelConfig& out);

// The router of DeepSeek V3, which others took over: groups, sigmoids with a bias of the choice,
// and norm_topk_prob. REQUIRES out.experts.
void parse_sigmoid_router(const Json& text, ModelConfig& out);

// Throws unless the member is absent or has the value that the architecture computes with.
void check_router_says(const Json& text, const char* key, const char* expected);

}  // namespace fp8kv
