// MiMo: Qwen 2, with a layer that predicts the token after the next. Files name it mtp_layers, and
// it is not computed.
#include "base/error.h"
#include "config/families/families.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_rows.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

// vLLM and SGLang ignore attention_bias: they always take biases of Q, K and V.
void parse_mimo(const Json& config, ModelConfig& out) {
  parse_qwen2(config, out);
  if (config.get_bool("attention_bias", true)) return;
  fail(config.at("attention_bias").where(),
       ": is false, expected true: runtimes take biases of Q, K and V for MiMo");
}

}  // namespace

Architecture mimo() {
  return {.name = "MiMoForCausalLM",
          .model_type = "mimo",
          .summary = "MiMo 7B",
          .windows = true,
          .parse = parse_mimo,
          .tensors = llama_tensors(),
          .activations = kSilu};
}

}  // namespace fp8kv
