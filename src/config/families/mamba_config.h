// What a config.json says of layers of Mamba-2. Internal to config.
#pragma once

#include "core/config.h"
#include "json/json.h"

namespace fp8kv {

// Keys under which a family says it.
struct MambaKeys {
  const char* heads;
  const char* head_dim;
  const char* groups;
  const char* state_dim;
  const char* conv_width;
  const char* conv_bias;
  const char* bias;
  const char* out_bias;         // of the product at the end
  const char* expand;           // of the width of all heads from `dim`
  bool checks_expand;           // whether that has to fit the heads; else it counts for nothing
  const char* width = nullptr;  // of all heads, in place of `expand` where it is not null
};

// out.recurrence of a model with such layers; of others the keys are passed over.
void parse_mamba(const Json& text, const MambaKeys& keys, ModelConfig& out);

// What time steps are brought within, by time_step_limit, of models that go by it.
void parse_step_limit(const Json& text, ModelConfig& out);
// Throws where time_step_limit is any limit at all.
void check_no_step_limit(const Json& text);

}  // namespace fp8kv
