#include "scales/rules/model_families.h"

namespace fp8kv {
namespace {

using Names = PortableNames;

constexpr ModelFamily kFamilies[] = {
    {"llama", Fact::llama_mistral, Names::both},
    {"mistral", Fact::llama_mistral, Names::both},
    {"qwen2", Fact::qwen2, Names::both},
    {"qwen2_moe", Fact::qwen2_moe, Names::parameters},
    {"qwen3", Fact::qwen3, Names::both},
    {"qwen3_moe", Fact::qwen3_moe, Names::both},
    {"qwen3_5", Fact::qwen3_5, Names::both},
    {"qwen3_5_text", Fact::qwen3_5, Names::both},
    {"qwen3_next", Fact::qwen3_next, Names::projections},
    {"gpt_oss", Fact::gpt_oss, Names::both},
    {"gemma3", Fact::gemma3, Names::both},
    {"gemma3_text", Fact::gemma3, Names::both},
    {"mixtral", Fact::mixtral, Names::both},
    {"phi3", Fact::phi3, Names::both},
    {"glm4_moe", Fact::glm4_moe, Names::both},
    {"nemotron_h", Fact::nemotron_h, Names::both},
    {"granite", Fact::granite, Names::parameters},
    {"deepseek_v2", Fact::deepseek, Names::projections},
    {"deepseek_v3", Fact::deepseek, Names::projections},
    // The same attention, in the same class of every runtime.
    {"kimi_k2", Fact::deepseek, Names::projections},
    {"kimi_k25", Fact::deepseek, Names::projections},
    {"glm4_moe_lite", Fact::deepseek, Names::projections},
    {"deepseek_v32", Fact::deepseek_sparse, Names::projections},
    {"glm_moe_dsa", Fact::deepseek_sparse, Names::projections},
    {"gpt2", Fact::gpt2, Names::parameters, true},
    {"gpt_bigcode", Fact::gpt_bigcode, Names::parameters, true},
    {"gpt_neox", Fact::gpt_neox, Names::parameters, true},
    {"falcon", Fact::falcon, Names::parameters, true},
    {"internlm2", Fact::internlm2, Names::parameters, true},
    {"baichuan", Fact::baichuan, Names::parameters, true},
    {"bamba", Fact::bamba, Names::both},
};

}  // namespace

std::span<const ModelFamily> model_families() {
  return kFamilies;
}

const ModelFamily* find_family(std::string_view model_type) {
  for (const ModelFamily& family : kFamilies) {
    if (family.model_type == model_type) return &family;
  }
  return nullptr;
}

PortableNames portable_names(std::string_view model_type) {
  const ModelFamily* family = find_family(model_type);
  return family ? family->names : PortableNames::both;
}

}  // namespace fp8kv
