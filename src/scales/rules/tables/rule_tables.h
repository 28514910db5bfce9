// The rules of each runtime. A row lists the facts that must hold, the facts that must not, the
// outcome, a sentence and its source. Versions, families and rounding narrow the row behind that.
#pragma once

#include <span>

#include "scales/rules/tables/family.h"
#include "scales/rules/tables/runtime_rule.h"

namespace fp8kv {

std::span<const RuntimeRule> tgi_branch_rules();
std::span<const RuntimeRule> tgi_rules();
std::span<const RuntimeRule> vllm_rules();
std::span<const RuntimeRule> sglang_rules();
std::span<const RuntimeRule> transformers_rules();
std::span<const RuntimeRule> trtllm_builder_rules();
std::span<const RuntimeRule> trtllm_pytorch_rules();

// Families that cache latents, in which most runtimes have one class for all.
inline constexpr FamilySet kLatent = {Family::deepseek, Family::glm4_moe_lite};

// Sentences that several runtimes share.
inline constexpr const char* kNoScales = "there are no scales: an FP8 cache runs with 1";
inline constexpr const char* kNoNvfp4Scales = "there are no scales: an NVFP4 cache runs with 1";
inline constexpr const char* kNvfp4NotSeen =
    "whether it has an NVFP4 cache that takes these scales was not looked at";
inline constexpr const char* kQNotSeen =
    "what it does with scales of Q was not looked at for this family";
inline constexpr const char* kNoScaleFile = "reads no scale file";
inline constexpr const char* kUnknownNames =
    "does not know the scales by these names: an FP8 cache runs with 1";
inline constexpr const char* kBothForK =
    "takes kv_scale and k_scale both for K's, and the later one wins";
inline constexpr const char* kNotDoubled =
    "nothing doubles the scales for FNUZ GPUs (MI300), where values then saturate at 240";
inline constexpr const char* kMethodNotSeen =
    "whether it reads KV scales beside this quant_method was not looked at";
inline constexpr const char* kNamesNotSeen =
    "whether it knows the scales by these names is not known";

}  // namespace fp8kv
