// Families of models that some runtime loads with different code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace fp8kv {

enum class Family : uint8_t {
  other,
  llama_mistral,
  qwen2,
  qwen2_moe,
  qwen3,
  qwen3_moe,
  qwen3_5,
  qwen3_next,
  gpt_oss,
  gemma3,
  gemma4,
  mixtral,
  phi3,
  glm4_moe,
  nemotron_h,
  granite,
  granite_hybrid,   // Granite 4
  deepseek,         // DeepSeek V2 and V3, Kimi K2, Mistral 4: an MLA cache
  glm4_moe_lite,    // GLM-4.7 Flash: the same, with a loader of its own in SGLang
  deepseek_sparse,  // DeepSeek V3.2, GLM-5 and HunYuan 4: MLA with sparse attention
  deepseek_v4,      // one row for K and V, beside rows that pool tokens
  glm5_next,        // latents that do not rotate
  gpt2,
  gpt_bigcode,  // StarCoder 1
  gpt_neox,
  falcon,
  internlm2,
  baichuan,
  bamba,
  jamba,
  minimax_01,
  zamba2,
  falcon_h1,
  minicpm3,  // an MLA whose latent vLLM does not cache
  mimo_v2,
  minimax_m3,
  step,  // Step 3.5 and 3.7
  muse_glimmer,
  muse_spark,
  olmo_hybrid,
  kimi_linear,  // an MLA cache, in a few layers
  ling3,        // likewise
  kimi_k3,      // likewise
  ling2,        // Ling 2 and Sarvam 30B
  longcat,      // an MLA cache, two for each layer of config.json
  qwen4_exp,
  inkling,
  drafter,  // EAGLE-3: serves beside another model
};
inline constexpr size_t kFamilyCount = static_cast<size_t>(Family::drafter) + 1;

// The family's name: "llama_mistral".
const char* family_name(Family family);

class FamilySet {
 public:
  constexpr FamilySet() = default;
  constexpr FamilySet(std::initializer_list<Family> families) {
    for (const Family family : families) bits_ |= bit(family);
  }
  constexpr bool has(Family family) const { return (bits_ & bit(family)) != 0; }
  std::vector<std::string> names() const;
  bool operator==(const FamilySet&) const = default;

 private:
  static constexpr uint64_t bit(Family family) {
    return uint64_t{1} << static_cast<unsigned>(family);
  }
  static_assert(kFamilyCount <= 64);
  uint64_t bits_ = 0;
};

}  // namespace fp8kv
