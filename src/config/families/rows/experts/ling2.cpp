// Ling 2: attention of Qwen 3 in one matrix, which rotates a part of each head, and experts and
// router of DeepSeek V3. Sarvam 30B has the same tensors.
#include "base/error.h"
#include "config/families/rows/family_rows.h"
#include "config/families/rows/ling.h"
#include "config/families/rows/sarvam.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

bool says_part(const Json& config) {
  constexpr const char* kPart = "partial_rotary_factor";
  if (config.has(kPart)) return true;
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    const auto rope = config.find(key);
    if (rope && rope->has(kPart)) return true;
  }
  return false;
}

// Reads rotary_dim, which some files have in place of partial_rotary_factor.
void parse_rotated_elements(const Json& config, ModelConfig& out) {
  const auto said = config.find("rotary_dim");
  if (!said) return;
  RopeConfig& rope = out.ropes[0];
  const int64_t size = in_range(*said, 2, out.head_dim());
  if (size % 2 != 0) fail(said->where(), ": is ", size, ", expected an even number");
  const int64_t by_part = rope.rotary_dim > 0 ? rope.rotary_dim : out.head_dim();
  if (says_part(config) && size != by_part) {
    fail(said->where(), ": is ", size, ", expected ", by_part,
         ", which is partial_rotary_factor of head_dim: runtimes differ in which they go by");
  }
  rope.rotary_dim = size == out.head_dim() ? 0 : size;
}

void parse_ling2(const Json& config, ModelConfig& out) {
  // The published code takes other sizes than head_dim = hidden_size / heads and one KV head for
  // each head. Without a score_function vLLM takes a softmax.
  for (const char* key : {"head_dim", "num_key_value_heads", "score_function"}) config.at(key);
  refuse_if_set(config, "use_bias", "a bias of each product");
  refuse_if_set(config, "norm_head", "a normalised lm_head");
  if (!is_on(config, "use_rmsnorm")) {
    fail(config.at("use_rmsnorm").where(),
         ": is false, expected true: vLLM then norms Q and K by a layer norm, and the published "
         "code by their root mean square");
  }
  out.qkv_bias = config.get_bool("use_qkv_bias", false);
  if (is_on(config, "use_qk_norm")) out.block.qk_norm = QkNorm::per_head;
  parse_rotated_elements(config, out);
  parse_ling2_experts(config, out);
}

constexpr std::string_view kLing2Types[] = {"bailing_moe_v2"};

}  // namespace

Architecture ling2() {
  return {.name = "BailingMoeV2ForCausalLM",
          .model_type = "bailing_moe",
          .summary = "Ling 2, Ring 2",
          .parse = parse_ling2,
          .tensors = sarvam_moe_tensors(),
          .activations = kSilu,
          .rope = {.theta = 600000, .reads_part = true},
          .more_types = kLing2Types};
}

}  // namespace fp8kv
