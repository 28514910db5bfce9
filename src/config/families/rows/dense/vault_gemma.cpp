// VaultGemma: Gemma 2 without the norms behind its blocks.
#include "config/families/families.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"

namespace fp8kv {
namespace {

using enum TensorRole;

constexpr NamedActivation kVaultGemmaActivations[] = {{"gelu_pytorch_tanh", Activation::gelu_tanh}};

std::span<const TensorRow> vault_gemma_tensors() {
  static const TensorRows rows =
      joined({opening(),
              qkv(),
              attention_out(),
              {{"model.layers.{}.pre_feedforward_layernorm", {ffn_norm}}},
              gated_mlp(),
              ending()});
  return rows;
}

void parse_vault_gemma(const Json& config, ModelConfig& out) {
  parse_gemma2(config, out);
  out.block.norm_place = NormPlace::before;
}

}  // namespace

Architecture vault_gemma() {
  return {.name = "VaultGemmaForCausalLM",
          .model_type = "vaultgemma",
          .summary = "VaultGemma",
          .windows = true,
          .parse = parse_vault_gemma,
          .tensors = vault_gemma_tensors(),
          .activations = kVaultGemmaActivations,
          .activation = "hidden_activation",
          .tied = true};
}

}  // namespace fp8kv
