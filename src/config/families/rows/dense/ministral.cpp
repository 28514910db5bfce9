// Ministral 8B of 2024: Mistral whose layers may differ in whether they have a window.
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_rows.h"

namespace fp8kv {
namespace {

void parse_ministral(const Json&, ModelConfig&) {}

}  // namespace

Architecture ministral() {
  return {.name = "MinistralForCausalLM",
          .model_type = "ministral",
          .summary = "Ministral 8B",
          .windows = true,
          .parse = parse_ministral,
          .tensors = llama_tensors(),
          .activations = kSilu};
}

}  // namespace fp8kv
