// The configs of all models that transformers computed, and their special features.
#pragma once

#include <map>
#include <set>
#include <string>

#include "core/model/config.h"

namespace fp8kv::test {

// Every golden's config of either kind, by its architecture in config.json.
std::multimap<std::string, ModelConfig> golden_configs();

// The features of a model that a plain model may not have, in words.
std::set<std::string> oddities(const ModelConfig& config);

}  // namespace fp8kv::test
