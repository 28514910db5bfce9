#include "scales/rules/tables/rule_tables.h"

namespace fp8kv {
namespace {

using enum Fact;
using enum Family;
using enum RuntimeOutcome;

constexpr const char* kSglangKv = "sglang 078e5e2a: quantization/kv_cache.py";
constexpr const char* kSglangRun = "run: SGLang 0.5.23";
constexpr const char* kSglangFlag =
    "with --kv-cache-dtype fp8_e4m3: one scale for K and one for V, doubled for FNUZ GPUs";
constexpr const char* kNotMapped =
    "its loader of this family does not know the scales by these names: an FP8 cache runs with 1";
constexpr RuntimeVersion k19 = {0, 5, 19};
// Families with Q, K and V in one matrix that SGLang has models of.
constexpr FamilySet kSglangOneMatrix = {gpt2, gpt_bigcode, internlm2, baichuan};
// Families whose loaders were run and know the usual names.
constexpr FamilySet kUsual = {llama_mistral, gemma3, gemma4, phi3, qwen3_5};

// clang-format off
constexpr RuntimeRule kSglangRules[] = {
    // Drafters. The target's flags say which cache they have.
    RuntimeRule{{}, {scales}, ignores, kNoScales, kSglangKv}.of({drafter}),
    RuntimeRule{{unquantised}, {}, ignores,
     "has no scales without a quantization_config: an FP8 cache runs with 1", kSglangKv}
        .of({drafter}),
    RuntimeRule{{compressed_tensors, cache_scheme, parameters}, {per_head, k_only, v_only}, loads,
     "when it drafts with an FP8 cache: into the drafter's own attention",
     "sglang 0.5.19, 0.5.20, 0.5.23: srt/models/llama_eagle3.py"}.of({drafter}).from(k19).doubles(),
    RuntimeRule{{compressed_tensors}, {parameters}, ignores,
     "looks for the scales of a drafter as attn.k_scale alone: an FP8 cache runs with 1",
     "sglang 0.5.19, 0.5.20, 0.5.23: srt/models/llama_eagle3.py"}.of({drafter}).from(k19),
    RuntimeRule{{}, {}, unknown, "its loader of drafters was not looked at with this form", kSglangKv}
        .of({drafter}),

    {{scale_file}, {with_model_type}, ignores,
     "a file without model_type does not pass its check: an FP8 cache runs with 1",
     "sglang: docs/advanced_features/quantized_kv_cache.md"},
    {{scale_file}, {scale_file_loader}, fails,
     "stops with a RuntimeError: its model of this model_type has no load_kv_cache_scales",
     "sglang 0.5.23: load_model_utils.py:119-137, models/*.py"},
    {{scale_file}, {}, loads,
     "with --quantization-param-path and --kv-cache-dtype fp8_e4m3: one scale for K and V", kSglangKv},
    {{nvfp4_scheme}, {}, unknown, kNvfp4NotSeen, kSglangKv},
    {{}, {scales}, ignores, kNoScales, kSglangKv},
    {{unquantised}, {}, ignores,
     "has no scales without a quantization_config: an FP8 cache runs with 1", kSglangKv},
    RuntimeRule{{}, {}, unknown,
     "its loader was read and not run: it may take attn.attn.k_scale, and mxfp8 needs no scales",
     "sglang 0.5.23: srt/models/inkling.py, inkling_common/attn.py"}.of({inkling}),
    RuntimeRule{{}, {}, ignores,
     "makes the attention of this family without scales: an FP8 cache runs with 1, whatever the "
     "folder says", ""}.of({qwen3, qwen3_moe, glm4_moe, gpt_oss}).seen(kSglangRun),
    RuntimeRule{{compressed_tensors}, {}, ignores,
     "kv_cache_scheme means nothing to it: an FP8 cache runs with 1", ""}
        .until(k19).seen("run: SGLang 0.5.9"),
    {{compressed_tensors, cache_scheme, no_strategy}, {}, ignores,
     "takes a kv_cache_scheme with the strategy tensor alone: an FP8 cache runs with 1",
     "sglang 0.5.23: compressed_tensors.py:1276-1285"},
    RuntimeRule{{compressed_tensors, attn_head}, {}, ignores,
     "takes static, symmetric scales per tensor alone: an FP8 cache runs with 1", ""}.seen(kSglangRun),
    {{per_head}, {}, unknown,
     "has one scale per layer; what it does with more is not known", kSglangKv},
    {{other_method}, {}, unknown, kMethodNotSeen, kSglangKv},
    RuntimeRule{{fused, apart}, {}, misreads, kBothForK, ""}.seen(kSglangRun),

    // The rules of families in which every scale name was tried.
    RuntimeRule{{projections}, {}, loads, kSglangFlag, ""}.of({deepseek}).doubles().seen(kSglangRun),
    RuntimeRule{{}, {}, ignores,
     "reads k_proj.k_scale and v_proj.v_scale alone for MLA: an FP8 cache runs with 1", ""}
        .of({deepseek}).seen(kSglangRun),
    RuntimeRule{{}, {}, ignores,
     "looks for the scales of GLM-4.7 Flash by a name that it does not have: an FP8 cache runs with 1",
     ""}.of({glm4_moe_lite}).seen(kSglangRun),
    RuntimeRule{{}, {}, ignores,
     "the FP8 cache of its sparse attention makes scales of its own: these have no use",
     "sglang 0.5.23: DSA"}.of({deepseek_sparse}),
    RuntimeRule{{}, {}, unknown, "its cache of this family was not looked at", kSglangKv}
        .of({deepseek_v4, glm5_next, muse_spark, kimi_k3}),
    RuntimeRule{{}, {}, fails, "has no model of this family", ""}.of({falcon}).seen(kSglangRun),
    RuntimeRule{{}, {}, fails, "stops at a KV scale of any name with a KeyError", ""}
        .of({falcon_h1}).seen(kSglangRun),
    RuntimeRule{{apart}, {}, fails,
     "stops at the attention's own k_scale with a KeyError: write attn.k_scale below it alone", ""}
        .of(kSglangOneMatrix).seen(kSglangRun),
    RuntimeRule{{parameters}, {}, loads, kSglangFlag, ""}.of(kSglangOneMatrix).doubles().seen(kSglangRun),
    RuntimeRule{{modelopt}, {}, fails, "stops at such a config with an error", ""}
        .of({granite, granite_hybrid}).seen(kSglangRun),
    RuntimeRule{{apart}, {}, fails, "stops at self_attn.k_scale with an error", ""}
        .of({granite, granite_hybrid, qwen3_next}).seen(kSglangRun),
    RuntimeRule{{projections}, {}, fails, "stops at k_proj.k_scale with an error", ""}
        .of({granite, granite_hybrid}).seen(kSglangRun),
    RuntimeRule{{modelopt}, {}, ignores, kNotMapped, ""}.of({mixtral, qwen2_moe}).seen(kSglangRun),
    RuntimeRule{{projections}, {}, fails, "stops at k_proj.k_scale with an error", ""}
        .of({mixtral}).seen(kSglangRun),
    RuntimeRule{{parameters}, {}, loads, kSglangFlag, ""}
        .of({qwen2, mixtral, qwen2_moe, qwen3_next, granite, granite_hybrid, qwen3_5}).doubles().seen(kSglangRun),
    RuntimeRule{{projections}, {}, loads, kSglangFlag, ""}.of({qwen3_next}).doubles().seen(kSglangRun),
    RuntimeRule{{}, {}, ignores, kNotMapped, ""}.of({qwen2, mixtral, qwen2_moe}).seen(kSglangRun),
    RuntimeRule{{apart}, {}, loads, kSglangFlag, ""}.of(kUsual).doubles().seen(kSglangRun),
    RuntimeRule{{projections}, {}, loads, kSglangFlag, ""}.of(kUsual).doubles().seen(kSglangRun),
    RuntimeRule{{parameters}, {}, ignores, kNotMapped, ""}.of(kUsual).seen(kSglangRun),
    RuntimeRule{{fused}, {}, loads,
     "with --kv-cache-dtype fp8_e4m3: kv_scale for K and V, doubled for FNUZ GPUs", kSglangKv}
        .of(kUsual).doubles(),
    RuntimeRule{{outputs}, {}, loads, kSglangFlag, kSglangKv}.of(kUsual).doubles(),
    {{}, {}, unknown,
     "some of its loaders drop KV scales without a word, and that of this family was not run",
     "sglang issue 39942"},

    {{scale_file, scale_file_loader}, {}, note,
     "is reported to read the file and then not to use it", "sglang issue 18818", Basis::reports},
    RuntimeRule{{scale_file, scale_file_loader}, {}, note, kNotDoubled, kSglangKv}.keeps(),
    {{queries}, {}, note, kQNotSeen, kSglangKv},
};
// clang-format on

}  // namespace

std::span<const RuntimeRule> sglang_rules() {
  return kSglangRules;
}

}  // namespace fp8kv
