// Helium: Llama that rotates neighbouring elements, without a bias of the attention's output.
#include "config/families/families.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_rows.h"

namespace fp8kv {
namespace {

void parse_helium(const Json& config, ModelConfig& out) {
  parse_llama(config, out);
  out.o_bias = false;
}

}  // namespace

Architecture helium() {
  return {.name = "HeliumForCausalLM",
          .model_type = "helium",
          .summary = "Helium",
          .parse = parse_helium,
          .tensors = llama_tensors(),
          .activations = kSilu,
          .rope = {.theta = 100000.0, .pairs = RopePairs::neighbours}};
}

}  // namespace fp8kv
