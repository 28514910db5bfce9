// What the models that transformers computed have, between them.
#pragma once

#include <map>
#include <set>
#include <string>

#include "core/config.h"

namespace fp8kv::test {

// Each golden, of either kind, by what its config.json calls its architecture.
std::multimap<std::string, ModelConfig> golden_configs();

// What a model has that a plain one may not have, in words.
std::set<std::string> oddities(const ModelConfig& config);

}  // namespace fp8kv::test
