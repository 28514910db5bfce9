// Phi-4 multimodal: the language model of Phi-4-mini. Published files have its matrices below
// base_layer, beside adapters (LoRA) that images and speech switch on. Text uses none.
#include "config/families/families.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"

namespace fp8kv {
namespace {

using enum TensorRole;

TensorRow adapted(const char* name, const char* published, std::vector<TensorRole> roles) {
  return {.name = name, .roles = std::move(roles), .other_name = published};
}

std::span<const TensorRow> phi4_multimodal_tensors() {
  static const TensorRows rows =
      joined({opening(),
              {adapted("model.layers.{}.self_attn.qkv_proj",
                       "model.layers.{}.self_attn.qkv_proj.base_layer", {q, k, v}),
               adapted("model.layers.{}.self_attn.o_proj",
                       "model.layers.{}.self_attn.o_proj.base_layer", {o})},
              next_norm(),
              {adapted("model.layers.{}.mlp.gate_up_proj",
                       "model.layers.{}.mlp.gate_up_proj.base_layer", {gate, up}),
               adapted("model.layers.{}.mlp.down_proj", "model.layers.{}.mlp.down_proj.base_layer",
                       {down})},
              ending()});
  return rows;
}

Architecture phi4(const char* name, const char* model_type, const char* summary) {
  return {.name = name,
          .model_type = model_type,
          .summary = summary,
          .windows = true,
          .parse = parse_phi3,
          .tensors = phi4_multimodal_tensors(),
          .activations = kSilu,
          .rope = {.reads_part = true}};
}

}  // namespace

Architecture phi4_multimodal() {
  return phi4("Phi4MultimodalForCausalLM", "phi4_multimodal",
              "Phi-4-multimodal as transformers saves it");
}

Architecture phi4mm() {
  return phi4("Phi4MMForCausalLM", "phi4mm", "Phi-4-multimodal");
}

}  // namespace fp8kv
