#include "config/values/language_config.h"

#include "config/values/config_values.h"
#include "config/values/ernie_vl_terms.h"
#include "config/values/family_defaults.h"
#include "config/values/inkling_terms.h"
#include "config/values/longcat_terms.h"
#include "config/values/step_terms.h"

namespace fp8kv {
namespace {

// Outer wrappers come first: Qwen2.5-Omni has thinker_config.text_config.
constexpr const char* kWrappers[] = {"thinker_config", "text_config", "language_config",
                                     "llm_config", "transformer_layer_config"};

}  // namespace

std::optional<Json> wrapped_config(const Json& config) {
  for (const char* key : kWrappers) {
    const auto inner = config.find(key);
    if (inner && inner->is_object()) return inner;
  }
  return std::nullopt;
}

Json language_config(const Json& config) {
  Json text = config;
  while (!find_any(text, kLayerCount)) {
    const auto inner = wrapped_config(text);
    if (!inner) break;
    text = with_family_defaults(*inner);
  }
  return with_inkling_terms(with_longcat_terms(with_ernie_vl_terms(with_step_terms(text))), config);
}

std::string model_type_of(const Json& config) {
  const std::string own = config.get_string("model_type", "");
  if (!own.empty() || wrapped_config(config)) return own;
  return language_config(config).get_string("model_type", "");
}

std::optional<Json> find_dtype(const Json& config) {
  const auto outer = find_any(config, {"dtype", "torch_dtype"});
  return outer ? outer : find_any(language_config(config), {"dtype", "torch_dtype"});
}

}  // namespace fp8kv
