#include "config/describe/usual_mixings.h"

#include <string>

#include "config/describe/describe_indexer.h"

namespace fp8kv {
namespace {

// Families whose configs may leave out the list of attention layers, if no layer has attention.
bool is_mamba_unless_said(const Json& text) {
  const std::string type = text.get_string("model_type", "");
  return type == "granitemoehybrid" || type == "bamba";
}

// Families whose configs may leave out the pattern: every fourth layer has attention.
bool is_every_fourth(const Json& text) {
  const std::string type = text.get_string("model_type", "");
  return type == "qwen3_next" || is_glm5_next(text) || type.starts_with("qwen3_5") ||
         type.starts_with("qwen4_exp");
}

}  // namespace

Mixings periodic(int64_t period, int64_t full, Mixing other, int64_t n_layers) {
  Mixings mixings;
  for (int64_t i = 0; i < n_layers; ++i)
    mixings.push_back(i % period == full ? Mixing::full : other);
  return mixings;
}

bool is_zamba2(const Json& text) {
  return text.get_string("model_type", "") == "zamba2";
}

Mixings usual_mixings(const Json& text, const ModelDescription& model) {
  if (is_zamba2(text)) text.at("layers_block_type");
  const bool minimax = text.get_string("model_type", "") == "minimax";
  if (minimax) return periodic(2, 0, Mixing::recurrent, model.n_layers());
  if (is_every_fourth(text)) return periodic(4, 3, Mixing::recurrent, model.n_layers());
  const Mixing all = is_mamba_unless_said(text) ? Mixing::recurrent : Mixing::full;
  return Mixings(model.layers.size(), all);
}

}  // namespace fp8kv
