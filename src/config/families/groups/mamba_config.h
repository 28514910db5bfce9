// Reads the description of Mamba-2 layers in a config.json. Internal to config.
#pragma once

#include "core/model/config.h"
#include "json/json.h"

namespace fp8kv {

// A family's names of the keys for Mamba-2.
struct MambaKeys {
  const char* heads;
  const char* head_dim;
  const char* groups;
  const char* state_dim;
  const char* conv_width;
  const char* conv_bias;
  const char* bias;
  const char* out_bias;         // bias of the product at the end
  const char* expand;           // ratio of the width of all heads to `dim`
  bool checks_expand;           // whether `expand` must fit the heads; else it is ignored
  const char* width = nullptr;  // width of all heads; used instead of `expand` unless null
};

// Sets out.recurrence if the model has such layers; else only marks the keys as read.
void parse_mamba(const Json& text, const MambaKeys& keys, ModelConfig& out);

// Reads the bounds of time steps from time_step_limit, for families that apply them.
void parse_step_limit(const Json& text, ModelConfig& out);
// Throws if time_step_limit sets any bound.
void check_no_step_limit(const Json& text);

}  // namespace fp8kv
