// Command A Vision: the language model is Cohere 2, whose logits are not scaled there.
#include "config/families/families.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_rows.h"

namespace fp8kv {
namespace {

// transformers ignores logit_scale here. It reads the key of a Cohere 2 alone.
void parse_cohere2_vision(const Json& config, ModelConfig& out) {
  parse_cohere2(config, out);
  out.block.logit_multiplier = 1.0;
}

}  // namespace

Architecture cohere2_vision() {
  return {.name = "Cohere2VisionForConditionalGeneration",
          .model_type = "cohere2_vision",
          .summary = "Command A Vision",
          .windows = true,
          .parse = parse_cohere2_vision,
          .tensors = llama_tensors(),
          .activations = kSilu,
          .norm_eps = "layer_norm_eps",
          .tied = true,
          .rope = {.pairs = RopePairs::neighbours}};
}

}  // namespace fp8kv
