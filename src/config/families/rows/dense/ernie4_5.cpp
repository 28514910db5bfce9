// ERNIE 4.5, dense: Llama that rotates neighbouring elements and has one switch for all biases.
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_rows.h"

namespace fp8kv {
namespace {

void parse_ernie4_5(const Json& config, ModelConfig& out) {
  out.qkv_bias = out.o_bias = out.mlp_bias = config.get_bool("use_bias", false);
}

}  // namespace

Architecture ernie4_5() {
  return {.name = "Ernie4_5ForCausalLM",
          .model_type = "ernie4_5",
          .summary = "ERNIE 4.5, dense",
          .parse = parse_ernie4_5,
          .tensors = llama_tensors(),
          .activations = kSilu,
          .tied = true,
          .rope = {.theta = 500000.0, .pairs = RopePairs::neighbours}};
}

}  // namespace fp8kv
