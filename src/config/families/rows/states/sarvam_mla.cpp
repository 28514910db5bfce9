// Sarvam 105B: DeepSeek V3 with other defaults, and with the names of keys that Sarvam gives them.
#include "config/families/groups/latent_architectures.h"
#include "config/families/rows/family_rows.h"
#include "config/families/rows/sarvam.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

void parse_sarvam_mla(const Json& config, ModelConfig& out) {
  // Transformers and vLLM compute the sum, and normalise no head, whatever these say.
  for (const char* key : {"q_head_dim", "use_qk_norm"}) config.find(key);
  parse_latent(config, out);
  set_latent_pairs(config, out);
  parse_sarvam_experts(config, out);
}

}  // namespace

Architecture sarvam_mla() {
  return {.name = "SarvamMLAForCausalLM",
          .model_type = "sarvam_mla",
          .summary = "Sarvam 105B",
          .parse = parse_sarvam_mla,
          .tensors = latent_q_tensors(),
          .activations = kSilu,
          .rope = {.pairs = RopePairs::neighbours, .reads_mscale = true}};
}

}  // namespace fp8kv
