#include "scales/rules/tables/rule_tables.h"

namespace fp8kv {
namespace {

using enum Fact;
using enum Family;
using enum RuntimeOutcome;

constexpr const char* kRemoved = "vllm PR 11906";
constexpr const char* kOldKv = "vllm v0.10.0: quantization/kv_cache.py:28-102";
constexpr const char* kVllmKv = "vllm: quantization/kv_cache.py:57-151";
constexpr const char* kVllmCompressed = "vllm PR 30141: compressed_tensors.py:1031-1221";
constexpr const char* kMapper = "vllm PR 43167, PR 44589: models/utils.py:384-417";
constexpr const char* kAuto = "vllm: attention/attention.py:275-285, utils/torch_utils.py:427-509";
constexpr const char* kRunOld = "run: vLLM 0.7.3, 0.9.2, 0.10.2, 0.11.2, 0.12.0, 0.14.1";
constexpr const char* kRun15 = "run: vLLM 0.15.1, 0.16";
constexpr const char* kRunNew = "run: vLLM 0.15.1 to 0.33, nine of them";
constexpr const char* kRun25 = "run: vLLM 0.25.1, 0.26, 0.28, 0.32, 0.33";
constexpr const char* kRunDrafts = "run: vLLM 0.32's loader of drafts";
constexpr const char* kRunFamilies = "run: vLLM 0.16.0, 0.20.2, 0.24.0, 0.32.0, 0.33.0";

constexpr const char* kVllmFlag =
    "with --kv-cache-dtype fp8: one scale for K and one for V, doubled for FNUZ GPUs since 0.8";
constexpr const char* kOnePerLayer = "takes one scale per layer, not one per KV head";
constexpr const char* kNoParameters =
    "does not find self_attn.attn.k_scale and v_scale: an FP8 cache runs with 1";
constexpr const char* kRunOneMatrix = "run: vLLM 0.16.0, 0.24.0";
// Families with Q, K and V in one matrix.
constexpr FamilySet kOneMatrix = {gpt2, gpt_bigcode, gpt_neox, falcon, internlm2, baichuan};
// Families whose loaders were run with self_attn.q_scale beside compressed-tensors (kTakesQ) and
// beside fp8 (kRoundsQ), and with scales of an NVFP4 cache (kNvfp4).
constexpr FamilySet kTakesQ = {llama_mistral, qwen2,   qwen2_moe, qwen3, qwen3_moe, qwen3_5,
                               gpt_oss,       mixtral, gemma3,    phi3,  glm4_moe,  granite};
constexpr FamilySet kRoundsQ = {llama_mistral, qwen2, qwen3};
constexpr FamilySet kNvfp4 = {llama_mistral, qwen2,      qwen2_moe, qwen3,  qwen3_moe,
                              qwen3_5,       qwen3_next, gpt_oss,   gemma3, mixtral,
                              phi3,          glm4_moe,   granite};
constexpr RuntimeVersion k12 = {0, 12}, k15 = {0, 15}, k18 = {0, 18}, k24 = {0, 24}, k25 = {0, 25},
                         k27 = {0, 27}, k32 = {0, 32};

// clang-format off
constexpr RuntimeRule kVllmRules[] = {
    // Drafters. The target's flags say which cache they have.
    RuntimeRule{{}, {scales}, ignores, kNoScales, kVllmKv}.of({drafter}),
    RuntimeRule{{unquantised}, {}, fails,
     "takes no scales without a quantization_config: 'There is no module or parameter named'", ""}
        .of({drafter}).from(k32).seen(kRunDrafts),
    RuntimeRule{{compressed_tensors, cache_scheme}, {per_head, k_only, v_only}, loads,
     "when it drafts with an FP8 cache: into the drafter's own attention", ""}
        .of({drafter}).with_any({apart, parameters, projections}).from(k32).seen(kRunDrafts),
    RuntimeRule{{}, {}, unknown, "its loader of drafters was not run with this form", kVllmKv}
        .of({drafter}),

    {{scale_file}, {}, ignores, "its option for scale files is gone since 0.7.0", kRemoved},
    RuntimeRule{{consolidated}, {}, ignores,
     "reads consolidated*.safetensors instead of these files", "vllm: default_loader.py:151-178"}
        .from(k25),
    RuntimeRule{{compressed_tensors, cache_scheme}, {scales}, turns_on,
     "without a word, with scales of 1", kVllmCompressed}.from(k15).without_scales(),
    {{nvfp4_scheme}, {scales}, ignores, kNoNvfp4Scales, kVllmKv},
    RuntimeRule{{nvfp4_scheme}, {}, unknown, "has no NVFP4 cache, or none that was looked at", kVllmKv}
        .until(k32),
    RuntimeRule{{nvfp4_scheme, modelopt, projections}, {k_only, v_only, per_head}, turns_on,
     "an NVFP4 cache, as with --kv-cache-dtype nvfp4: one scale for K and one for V", ""}
        .of(kNvfp4).rounding().seen("run: vLLM 0.32.0, 0.33.0"),
    {{nvfp4_scheme}, {}, unknown,
     "its loader was not run with NVFP4 scales of this family or form", kVllmKv},
    {{}, {scales}, ignores, kNoScales, kVllmKv},
    RuntimeRule{{}, {}, unknown, "its loader of this family was not run",
     "vllm v0.23: models/minimax_text_01.py"}.of({minimax_01}),
    RuntimeRule{{}, {}, unknown, "its loader of this family was not run",
     "vllm 0.32.0: models/glm5next/common/model.py"}.of({glm5_next}),
    RuntimeRule{{compressed_tensors}, {}, fails,
     "takes no quantization_config but ModelOpt's of NVFP4 weights", ""}
        .of({muse_spark}).seen("run: vLLM 0.33.0"),
    RuntimeRule{{unquantised}, {}, fails,
     "takes no scales without a quantization_config: 'There is no module or parameter named'", ""}
        .of({muse_spark}).seen("run: vLLM 0.33.0"),
    RuntimeRule{{}, {}, unknown,
     "takes ModelOpt's config of NVFP4 weights alone, with which its loader was not run",
     "vllm 0.33.0: models/muse_spark/nvidia/model.py"}.of({muse_spark}),
    RuntimeRule{{}, {}, unknown, "its loader of this family was not run",
     "vllm 0.33.0: models/kimi_k3/nvidia/model.py"}.of({kimi_k3}),
    RuntimeRule{{unquantised}, {}, ignores,
     "skips them, as there is no quantization_config: an FP8 cache runs with 1", ""}
        .until(k25).seen("run: vLLM 0.7.3 to 0.24, eleven of them"),
    RuntimeRule{{unquantised}, {}, ignores,
     "skips them, as there is no quantization_config: an FP8 cache runs with 1", ""}
        .of({mimo_v2, minimax_m3, step}).seen("run: vLLM 0.32.0"),
    RuntimeRule{{unquantised}, {}, fails,
     "takes no scales without a quantization_config: 'There is no module or parameter named'", ""}
        .seen(kRun25),
    RuntimeRule{{compressed_tensors, no_groups, experts}, {}, fails,
     "stops at experts that are not quantised, whatever `ignore` says", ""}
        .until(k12).seen("run: vLLM 0.10.2; read: v0.8.5 to v0.11.2, eight of them"),
    RuntimeRule{{compressed_tensors, attention_ignored}, {}, ignores,
     "`ignore` covers the attention, which then has no scales: an FP8 cache runs with 1",
     "vllm v0.10.0: compressed_tensors.py"}.until(k15),
    RuntimeRule{{compressed_tensors, cache_scheme}, {}, fails,
     "stops at a kv_cache_scheme without a strategy, or without symmetric: true", ""}
        .with_any({no_strategy, not_symmetric})
        .seen("run: vLLM 0.16.0, 0.27.1, 0.32.0; read: 0.8.5 to 0.28, eight of them"),
    RuntimeRule{{compressed_tensors, attn_head}, {}, fails, kOnePerLayer, ""}
        .until(k15).seen(kRunOld),
    RuntimeRule{{compressed_tensors, attn_head}, {}, fails,
     "without FlashAttention stops with an AssertionError: scales per KV head are not supported", ""}
        .from(k15).until(k18).seen(kRun15),
    RuntimeRule{{per_head}, {}, fails, kOnePerLayer, kOldKv}.until(k15),
    RuntimeRule{{static_packing}, {}, fails,
     "does not know the packing auto_round:fp8_static; AutoRound's format llm_compressor loads", ""}
        .from(k15).seen("run: vLLM 0.16.0, 0.24.0, 0.27.1, 0.28.0, 0.32.0"),
    RuntimeRule{{block_packing}, {}, fails, "does not know the packing auto_round:fp8", ""}
        .from(k15).until(k32).seen("run: vLLM 0.16.0, 0.24.0, 0.27.1, 0.28.0"),
    RuntimeRule{{weights_method}, {}, ignores,
     "has no KV scales beside weights of GPTQ, AWQ or AutoRound: an FP8 cache runs with 1", ""}
        .from(k15).seen("run: vLLM 0.16.0, 0.24.0, 0.27.1, 0.32.0"),
    {{other_method}, {}, unknown, kMethodNotSeen, kVllmKv},

    // MLA's cache.
    RuntimeRule{{modelopt, projections}, {}, loads,
     "with --kv-cache-dtype fp8: one scale for K and one for V", ""}
        .of(kLatent).from(k18).until(k25).rounding().doubles().seen("run: vLLM 0.20.2, 0.24.0"),
    RuntimeRule{{}, {}, ignores,
     "drops the scales of MLA, with one warning: an FP8 cache runs with 1", ""}
        .of(kLatent).seen(kRunFamilies),
    RuntimeRule{{}, {}, ignores, "drops the scales of MLA: an FP8 cache runs with 1", ""}
        .of({kimi_linear, ling3}).seen("run: vLLM 0.32.0"),
    RuntimeRule{{}, {}, ignores,
     "the FP8 cache of its sparse attention, fp8_ds_mla, makes scales of its own: these have no use",
     "vllm v0.33: config/cache.py:43-66"}.of({deepseek_sparse}),
    RuntimeRule{{}, {}, ignores,
     "loads the scales where its sparse attention does not look: an FP8 cache runs with 1", ""}
        .of({qwen4_exp}).seen("run: vLLM 0.32.0's loader; read: models/qwen4_exp/nvidia/qsa.py"),
    RuntimeRule{{}, {}, fails,
     "takes no other names than attn.k_scale: 'There is no module or parameter named'", ""}
        .of({inkling}).with_any({parameters, projections}).seen("run: vLLM 0.32.0's loader"),
    RuntimeRule{{}, {}, ignores,
     "its attention does not read the scales: an FP8 cache runs with 1", ""}
        .of({inkling}).seen("run: vLLM 0.32.0's loader; read: models/inkling/nvidia/attention.py"),
    RuntimeRule{{}, {}, unknown,
     "caches K and V of each head, which it makes from the latent: these scales are the latent's",
     "vllm v0.32: models/minicpm3.py:52-160"}.of({minicpm3}),

    // Q, K and V in one matrix: there is no k_proj.
    RuntimeRule{{}, {}, unknown, "its loaders of this family were not run before 0.16", kOldKv}
        .of(kOneMatrix).until(k15),
    RuntimeRule{{}, {}, fails, "has no model of this family since 0.23", ""}
        .of({baichuan}).from(k24).seen("run: vLLM 0.32.0"),
    RuntimeRule{{compressed_tensors, apart}, {}, fails,
     "stops at the attention's own k_scale with a KeyError: write attn.k_scale below it alone", ""}
        .of(kOneMatrix).until(k25).seen(kRunOneMatrix),
    RuntimeRule{{compressed_tensors, apart}, {}, fails,
     "stops at the attention's own k_scale with an error: write attn.k_scale below it alone", ""}
        .of({gpt2}).from(k25).seen("run: vLLM 0.32.0"),
    RuntimeRule{{compressed_tensors, apart}, {parameters}, ignores, kUnknownNames, ""}
        .of({gpt_bigcode}).from(k25).seen("run: vLLM 0.32.0"),
    RuntimeRule{{compressed_tensors, projections}, {}, fails, "stops at k_proj.k_scale with an error", ""}
        .of({gpt2}).from(k25).seen("run: vLLM 0.32.0"),
    RuntimeRule{{projections}, {}, unknown, "this family has no k_proj", kVllmKv}.of(kOneMatrix),
    RuntimeRule{{compressed_tensors, cache_scheme, parameters}, {}, turns_on,
     "one scale for K and one for V, as F32", ""}
        .of(kOneMatrix).from(k15).seen("run: vLLM 0.16.0, 0.24.0, 0.32.0"),

    // Families whose loaders stop at a name, or ignore it.
    RuntimeRule{{}, {}, misreads,
     "loads scales of layers without an indexer alone: the others run an FP8 cache with 1", ""}
        .of({minimax_m3}).seen("run: vLLM 0.32.0"),
    RuntimeRule{{scales}, {}, fails, "stops at every name of a scale with a KeyError", ""}
        .of({bamba}).from(k15).until(k18).seen("run: vLLM 0.16.0"),
    RuntimeRule{{scales}, {}, unknown,
     "0.16 stops at every name of a scale; others were not run with this family", kVllmKv}
        .of({bamba}),
    RuntimeRule{{scales}, {}, unknown,
     "0.32 stops at every name of a scale; others were not run with this family", kVllmKv}
        .of({jamba, ling2, longcat, zamba2}).until(k32),
    RuntimeRule{{scales}, {}, fails, "stops at every name of a scale with an error", ""}
        .of({jamba, longcat}).seen("run: vLLM 0.32.0"),
    RuntimeRule{{scales}, {}, fails, "stops at every name of a scale with an error", ""}
        .of({ling2, zamba2}).seen("run: vLLM 0.32.0, 0.33.0"),
    RuntimeRule{{scales}, {}, fails,
     "its loader has no place for a scale of any name, and makes scales of its own: fp8_ds_mla",
     "read, not run: vllm 0.32.0, models/deepseek_v4/nvidia/model.py and attention.py"}
        .of({deepseek_v4}),
    RuntimeRule{{compressed_tensors, apart}, {}, fails,
     "stops at self_attn.k_scale with a KeyError: write self_attn.attn.k_scale alone", ""}
        .of({qwen2_moe}).until(k25).seen("run: vLLM 0.12.0, 0.14.1, 0.16.0, 0.20.2, 0.24.0"),
    RuntimeRule{{compressed_tensors, projections}, {}, fails,
     "stops at k_proj.k_scale with an error", ""}
        .of({qwen2_moe}).until(k24).seen("run: vLLM 0.16.0, 0.20.2"),
    RuntimeRule{{modelopt}, {}, fails, "stops at such a config with an error", ""}
        .of({qwen2_moe, mixtral, glm4_moe, granite}).until(k25)
        .seen("run: vLLM 0.16.0, 0.20.2, 0.24.0"),
    RuntimeRule{{modelopt}, {}, fails, "stops at such a config with an error", ""}
        .of({gemma3}).from(k24).until(k25).seen("run: vLLM 0.24.0"),
    RuntimeRule{{modelopt}, {}, ignores, kUnknownNames, ""}
        .of({qwen3_moe}).until(k18).seen("run: vLLM 0.16.0"),
    RuntimeRule{{}, {}, fails, "0.24 stops at the experts of a BF16 gpt-oss with a KeyError", ""}
        .of({gpt_oss}).from(k24).until(k25).seen("run: vLLM 0.24.0"),
    RuntimeRule{{modelopt}, {}, fails, "stops at such a config with an error", ""}
        .of({gpt_oss}).until(k24).seen("run: vLLM 0.16.0, 0.20.2"),
    RuntimeRule{{compressed_tensors, projections}, {}, fails,
     "stops at k_proj.k_scale with an error", ""}
        .of({gpt_oss, mixtral, glm4_moe, granite}).until(k24).seen("run: vLLM 0.16.0, 0.20.2"),
    RuntimeRule{{compressed_tensors, apart}, {parameters}, ignores, kUnknownNames, ""}
        .of({gpt_oss}).until(k24).seen("run: vLLM 0.16.0, 0.20.2"),
    RuntimeRule{{compressed_tensors, apart}, {parameters}, ignores, kUnknownNames, ""}
        .of({qwen3_moe}).until(k18).seen("run: vLLM 0.12.0, 0.14.1, 0.16.0"),
    RuntimeRule{{compressed_tensors, projections}, {apart, parameters}, ignores, kUnknownNames, ""}
        .of({qwen3_moe}).until(k18).seen("run: vLLM 0.12.0, 0.14.1"),

    RuntimeRule{{modelopt}, {quant_algo}, fails,
     "takes no ModelOpt config without a quant_algo", "vllm: quantization/modelopt.py:314"}
        .from(k25),
    RuntimeRule{{fused, apart}, {}, misreads, kBothForK, ""}
        .seen("run: vLLM 0.9.2, 0.16, 0.24, 0.32"),
    RuntimeRule{{compressed_tensors, fused}, {}, misreads,
     "takes kv_scale for K alone: V runs with 1", kVllmCompressed}.from(k15),
    RuntimeRule{{compressed_tensors, k_only}, {}, misreads,
     "V, which has no scale, runs with 1", kVllmCompressed}.from(k15),
    RuntimeRule{{compressed_tensors, v_only}, {}, misreads,
     "K, which has no scale, runs with 1", kVllmCompressed}.from(k15),
    RuntimeRule{{compressed_tensors, per_head}, {attn_head}, unknown,
     "the scales are per KV head, and the config's strategy is another", kVllmCompressed}.from(k15),
    RuntimeRule{{compressed_tensors, cache_scheme, parameters}, {apart, projections}, loads,
     kVllmFlag, ""}
        .of({qwen3_moe}).until(k15).rounding().doubles().seen("run: vLLM 0.12.0, 0.14.1"),
    RuntimeRule{{compressed_tensors, cache_scheme, parameters}, {apart, projections}, loads,
     kVllmFlag, ""}.of({qwen3_moe}).from(k15).until(k18).doubles().seen("run: vLLM 0.16.0"),
    RuntimeRule{{compressed_tensors, parameters}, {apart, projections}, ignores, kNoParameters, ""}
        .except({gpt_oss, qwen2_moe}).until(k24).seen("run: vLLM 0.16.0, 0.20.2"),
    RuntimeRule{{compressed_tensors, cache_scheme}, {}, loads, kVllmFlag, ""}
        .with_any({apart, parameters, projections}).until(k15).rounding().doubles().seen(kRunOld),
    RuntimeRule{{compressed_tensors, cache_scheme}, {}, turns_on,
     "one scale for K and one for V, as F32", ""}
        .with_any({apart, parameters, projections}).from(k15).seen(kRunNew),
    RuntimeRule{{compressed_tensors}, {}, unknown,
     "what it does without an FP8 kv_cache_scheme was not looked at", kVllmCompressed}.from(k15),
    RuntimeRule{{per_head}, {}, fails, kOnePerLayer, "vllm: quantization/kv_cache.py:18-39"}
        .from(k15),
    {{v_only}, {}, fails, "asserts when V has a scale and K has none", kVllmKv},
    RuntimeRule{{k_only}, {}, loads, "with --kv-cache-dtype fp8: K's scale for V too", kVllmKv}
        .rounding().doubles(),
    RuntimeRule{{modelopt, cache_scheme}, {}, turns_on, "one scale for K and one for V", kAuto}
        .from(k25).rounding().doubles(),
    RuntimeRule{{fused}, {}, loads,
     "with --kv-cache-dtype fp8: kv_scale for K and V, and calls it deprecated", kVllmKv}
        .rounding().doubles(),
    RuntimeRule{{apart}, {}, loads, kVllmFlag, ""}.rounding().doubles()
        .seen("run: vLLM 0.7.3 to 0.33"),
    RuntimeRule{{projections}, {}, loads, kVllmFlag, ""}.rounding().doubles().seen(kRunFamilies),
    RuntimeRule{{outputs}, {}, loads, kVllmFlag, "vllm: quantization/fp8.py:225-236"}.rounding()
        .doubles(),
    {{}, {}, unknown, kNamesNotSeen, kVllmKv},

    RuntimeRule{{queries, compressed_tensors}, {}, note,
     "takes the scales of Q as F32, where its attention computes in FP8", ""}
        .of(kTakesQ).from(k32).seen("run: vLLM 0.32.0, 0.33.0"),
    RuntimeRule{{queries}, {compressed_tensors}, note,
     "takes the scales of Q rounded to the model's dtype, where its attention computes in FP8", ""}
        .of(kRoundsQ).from(k32).seen("run: vLLM 0.32.0, with a block of fp8"),
    RuntimeRule{{queries, compressed_tensors}, {}, note, kQNotSeen, kVllmKv}
        .except(kTakesQ).from(k32),
    RuntimeRule{{queries}, {compressed_tensors}, note, kQNotSeen, kVllmKv}
        .except(kRoundsQ).from(k32),
    RuntimeRule{{queries}, {}, note, kQNotSeen, kVllmKv}.until(k32),
    RuntimeRule{{fp8, experts}, {fp8_weights}, note,
     "makes FP8 weights of the experts, whatever ignored_layers says", "vllm v0.10.0: fp8.py"}
        .until(k15),
    RuntimeRule{{scales}, {unquantised}, note,
     "--kv-cache-dtype fp8_e5m2 fails with such a model", "vllm v0.10.0: attention/layer.py:156-157"}
        .until(k15),
    RuntimeRule{{projections}, {}, note,
     "0.7.3 is reported to fail on these names", "vllm issue 15784", Basis::reports}.until(k15),
    RuntimeRule{{scales}, {}, note,
     "0.27.1 is reported to drop the scales of Qwen3.5; its loader, when it was run, took them",
     "vllm issue 54623", Basis::reports}.of({qwen3_5}).from(k27).until(k32),
    RuntimeRule{{compressed_tensors, scales}, {}, note, kNotDoubled, kVllmCompressed}.from(k15).keeps(),
    RuntimeRule{{compressed_tensors, apart, attn_head}, {}, note,
     "only FlashAttention has one scale per head; elsewhere the largest is used", kVllmCompressed}
        .from(k18),
    RuntimeRule{{compressed_tensors, cache_scheme}, {}, note,
     "an FP8 cache nobody asked for is reported to fail on L4 and to be slower on RDNA3 and V100",
     "vllm issues 44879, 56992", Basis::reports}.except({drafter}).from(k15),
};
// clang-format on

}  // namespace

std::span<const RuntimeRule> vllm_rules() {
  return kVllmRules;
}

}  // namespace fp8kv
