#include "config/describe/assistants.h"

namespace fp8kv {

std::optional<Error> reads_other_cache(const Json& config) {
  const auto type = config.find("model_type");
  if (!type || !type->is_string()) return std::nullopt;
  const std::string& name = type->as_string();
  if (name != "gemma4_assistant" && name != "gemma4_unified_assistant") return std::nullopt;
  return Error(
      cat(type->where(), ": ", name, " drafts from the KV cache of its model, and has none"),
      "take that model: its scales serve both");
}

}  // namespace fp8kv
