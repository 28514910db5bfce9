// DiffLlama: Llama with differential attention.
#include "base/error.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

TensorRow lambda_row(const char* name, TensorRole role) {
  return {.name = name, .roles = {role}, .bare = true};
}

std::span<const TensorRow> diffllama_tensors() {
  static const TensorRows rows =
      joined({opening(),
              qkv(),
              {lambda_row("model.layers.{}.self_attn.lambda_q1", lambda_q1),
               lambda_row("model.layers.{}.self_attn.lambda_k1", lambda_k1),
               lambda_row("model.layers.{}.self_attn.lambda_q2", lambda_q2),
               lambda_row("model.layers.{}.self_attn.lambda_k2", lambda_k2)},
              attention_out(),
              next_norm(),
              gated_mlp(),
              ending()});
  return rows;
}

// The heads of K and V form two halves, like those of Q.
void check_halves(const Json& config, const ModelConfig& out) {
  const int64_t heads = out.n_kv_heads();
  if (heads % 2 == 0) return;
  const auto said = config.find("num_key_value_heads");
  fail((said ? *said : config.at("num_attention_heads")).where(), ": is ", heads,
       ", expected an even number: differential attention takes one half of the heads from the "
       "other");
}

void parse_diffllama(const Json& config, ModelConfig& out) {
  out.qkv_bias = out.o_bias = config.get_bool("attention_bias", false);
  check_halves(config, out);
  config.find("lambda_std_dev");  // of the numbers that training starts from
  out.block.differential = true;
}

}  // namespace

Architecture diffllama() {
  return {.name = "DiffLlamaForCausalLM",
          .model_type = "diffllama",
          .summary = "DiffLlama",
          .parse = parse_diffllama,
          .tensors = diffllama_tensors(),
          .activations = kSilu,
          .context = 2048};
}

}  // namespace fp8kv
