// IQuest-Coder: Llama. Its config class refuses clip_qkv and use_sliding_window, and so does this.
#include "config/families/families.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_rows.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

void parse_iquest_coder(const Json& config, ModelConfig& out) {
  refuse_if_set(config, "clip_qkv", "clipping of Q, K and V");
  refuse_if_set(config, "use_sliding_window", "a sliding window in this architecture");
  parse_llama(config, out);
}

}  // namespace

Architecture iquest_coder() {
  return {.name = "IQuestCoderForCausalLM",
          .model_type = "iquestcoder",
          .summary = "IQuest-Coder V1",
          .parse = parse_iquest_coder,
          .tensors = llama_tensors(),
          .activations = kSilu};
}

}  // namespace fp8kv
