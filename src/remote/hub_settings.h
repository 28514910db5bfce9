// Reads settings of the Hugging Face Hub from the environment, under huggingface_hub's names.
// Source: huggingface_hub 2.4, constants.py and utils/_auth.py.
#pragma once

#include <string>

#include "checkpoint/hub_models.h"
#include "http/url.h"

namespace fp8kv {

struct HubSettings {
  Url endpoint;          // HF_ENDPOINT, or https://huggingface.co
  std::string token;     // HF_TOKEN, else the file HF_TOKEN_PATH or HF_HOME/token; or ""
  bool offline = false;  // HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE
};

// Throws a usage Error if the endpoint is not a URL, or if the token cannot be one.
HubSettings hub_settings(const Variables& variable = environment_variable);

}  // namespace fp8kv
