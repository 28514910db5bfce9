#include "scales/rules/model_families.h"

namespace fp8kv {
namespace {

using enum PortableNames;

constexpr ModelFamily kFamilies[] = {
    {"llama", Fact::llama_mistral, both},
    {"mistral", Fact::llama_mistral, both},
    {"qwen2", Fact::qwen2, both},
    {"qwen2_moe", Fact::qwen2_moe, parameters},
    {"qwen3", Fact::qwen3, both},
    {"qwen3_moe", Fact::qwen3_moe, both},
    {"qwen3_5", Fact::qwen3_5, both},
    {"qwen3_5_text", Fact::qwen3_5, both},
    {"qwen3_next", Fact::qwen3_next, projections},
    {"gpt_oss", Fact::gpt_oss, both},
    {"gemma3", Fact::gemma3, both},
    {"gemma3_text", Fact::gemma3, both},
    {"mixtral", Fact::mixtral, both},
    {"phi3", Fact::phi3, both},
    {"glm4_moe", Fact::glm4_moe, both},
    {"nemotron_h", Fact::nemotron_h, both},
    {"granite", Fact::granite, parameters},
    {"deepseek_v2", Fact::deepseek, projections},
    {"deepseek_v3", Fact::deepseek, projections},
};

}  // namespace

std::span<const ModelFamily> model_families() {
  return kFamilies;
}

PortableNames portable_names(std::string_view model_type) {
  for (const ModelFamily& family : kFamilies) {
    if (family.model_type == model_type) return family.names;
  }
  return both;
}

}  // namespace fp8kv
