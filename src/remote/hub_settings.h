// Settings of the Hugging Face Hub from the environment, by the names that huggingface_hub gives
// it. Source: huggingface_hub 2.4, constants.py and utils/_auth.py.
#pragma once

#include <string>

#include "checkpoint/hub_models.h"
#include "http/url.h"

namespace fp8kv {

struct HubSettings {
  Url endpoint;          // HF_ENDPOINT, or https://huggingface.co
  std::string token;     // HF_TOKEN, or that of HF_TOKEN_PATH or of HF_HOME/token; ""
  bool offline = false;  // HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE
};

// Throws a usage Error for an endpoint that is no URL and a token that cannot be one.
HubSettings hub_settings(const Variables& variable = environment_variable);

}  // namespace fp8kv
