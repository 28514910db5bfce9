// EXAONE 4: norms of OLMo 2 around blocks, norms of Qwen 3 for Q and K. Where the model has
// windows, the layers that see all tokens do not rotate.
#include "config/families/families.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_rows.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

// The first files of EXAONE 4.5 name their language model so.
constexpr std::string_view kExaone4Inside[] = {"exaone4_5_text"};

void parse_exaone4(const Json& config, ModelConfig& out) {
  out.block.norm_place = NormPlace::after;
  out.block.qk_norm = QkNorm::per_head;
  // A missing key stands for the family's window; null stands for none.
  if (mentions(config, "sliding_window") && !config.has("sliding_window")) return;
  for (size_t i = 0; i < out.layers.size(); ++i) {
    if (out.layers[i].mixing == Mixing::full) out.layer_ropes[i] = -1;
  }
}

}  // namespace

Architecture exaone4() {
  return {.name = "Exaone4ForCausalLM",
          .model_type = "exaone4",
          .summary = "EXAONE 4",
          .windows = true,
          .parse = parse_exaone4,
          .tensors = olmo2_tensors(),
          .activations = kSilu,
          .inner_types = kExaone4Inside};
}

}  // namespace fp8kv
