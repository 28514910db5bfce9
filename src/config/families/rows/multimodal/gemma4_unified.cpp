// Gemma 4 Unified: Gemma 4 without experts and per-layer inputs, whose images and sounds need no
// towers.
#include "config/families/families.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_rows.h"

namespace fp8kv {
namespace {

constexpr std::string_view kGemma4Inside[] = {"gemma4_unified_text"};
constexpr NamedActivation kTanhGelu[] = {{"gelu_pytorch_tanh", Activation::gelu_tanh}};

}  // namespace

Architecture gemma4_unified() {
  return {.name = "Gemma4UnifiedForConditionalGeneration",
          .model_type = "gemma4_unified",
          .summary = "Gemma 4 12B",
          .windows = true,
          .shapes = true,
          .parse = parse_gemma4_layers,
          .tensors = gemma4_tensors(),
          .activations = kTanhGelu,
          .activation = "hidden_activation",
          .tied = true,
          .rope = {.theta = 1e6, .by_layer_type = true, .full_turning = 0.25},
          .inner_types = kGemma4Inside};
}

}  // namespace fp8kv
