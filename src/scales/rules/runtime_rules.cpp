#include "scales/rules/runtime_rules.h"

#include <utility>

#include "base/error.h"

namespace fp8kv {
namespace {

using enum Fact;
using enum RuntimeOutcome;

constexpr const char* kBranchLoader = "tgi refs/pull/2028: utils/weights.py:770-812";
constexpr const char* kTgiLoader = "tgi: layers/attention/kv_cache.py";
constexpr const char* kTgiCt = "tgi: layers/compressed_tensors/loader.py";
constexpr const char* kRemoved = "vllm PR 11906";
constexpr const char* kOldKv = "vllm v0.10.0: quantization/kv_cache.py:28-102";
constexpr const char* kMainKv = "vllm: quantization/kv_cache.py:57-151";
constexpr const char* kMainCt = "vllm PR 30141: compressed_tensors.py:1031-1221";
constexpr const char* kMainMapper = "vllm PR 43167, PR 44589: models/utils.py:384-417";
constexpr const char* kAuto = "vllm: attention/attention.py:275-285, utils/torch_utils.py:427-509";
// Folders of a tiny model, made here and by llm-compressor 0.14: the logits were compared.
constexpr const char* kTransformersRun =
    "run: transformers 5.23.0 with compressed-tensors 0.20.0, and 4.57.1 with 0.12.2";
constexpr const char* kSglangKv = "sglang 078e5e2a: quantization/kv_cache.py";

constexpr const char* kNoScales = "there are no scales: an FP8 cache runs with 1";
constexpr const char* kNoScaleFile = "reads no scale file";
constexpr const char* kUnknownNames =
    "does not know the scales by these names: an FP8 cache runs with 1";
constexpr const char* kBothForK = "takes kv_scale and k_scale both for K's, and the later one wins";
constexpr const char* kFlag =
    "with --kv-cache-dtype fp8: one scale for K and one for V, doubled for FNUZ GPUs";
constexpr const char* kOldFlag =
    "with --kv-cache-dtype fp8: one scale for K and one for V, doubled for FNUZ GPUs since 0.8";
constexpr const char* kE5m2 = "--kv-cache-dtype fp8_e5m2 fails with such a model";
constexpr const char* kNotDoubled =
    "nothing doubles the scales for FNUZ GPUs (MI300), where values then saturate at 240";

// A row: all of these facts, none of those, what then; the sentence; where it says so.
// clang-format off
constexpr RuntimeRule kTgiBranchRules[] = {
    {{scale_file}, {}, ignores, kNoScaleFile, kBranchLoader},
    {{}, {scales}, ignores, kNoScales, kBranchLoader},
    {{}, {fused}, ignores, "reads kv_scale alone: an FP8 cache runs with 1", kBranchLoader},
    {{}, {llama_baichuan_phi3}, fails,
     "takes an FP8 cache for llama, baichuan and phi3 alone", kBranchLoader},
    {{fused_array}, {}, fails, "takes a kv_scale of shape [] alone", kBranchLoader},
    {{}, {torch_dtype}, fails,
     "needs kv_cache_torch_dtype in config.json: float8_e4m3fn or float8_e4m3fnuz", kBranchLoader},
    {{}, {unquantised}, unknown, "was made for FP16 and BF16 models", kBranchLoader},
    {{}, {}, loads,
     "with --kv-cache-dtype fp8: kv_scale for K and V, doubled for FNUZ GPUs", kBranchLoader},
    {{fused}, {}, note, kE5m2, kBranchLoader},
};

constexpr RuntimeRule kTgiRules[] = {
    {{scale_file}, {}, ignores, kNoScaleFile, kTgiLoader},
    {{compressed_tensors, no_groups, linear_missed}, {}, fails,
     "a linear layer is in no group and not ignored: 'Cannot find compressed-tensors target'",
     kTgiCt},
    {{compressed_tensors}, {frozen}, fails,
     "needs the quantization_status frozen or compressed", kTgiCt},
    {{compressed_tensors, no_groups, ignore_unclear}, {}, unknown,
     "fails unless `ignore` covers every linear layer, which cannot be told here", kTgiCt},
    {{apart, per_head}, {}, fails, "takes one scale per layer, not one per KV head", kTgiLoader},
    {{compressed_tensors, cache_scheme, apart}, {}, turns_on,
     "on CUDA with flashinfer, since 3.0; else with --kv-cache-dtype fp8_e4m3fn: k_scale and "
     "v_scale as F32", "tgi PR 2761: models/__init__.py:493-514"},
    {{apart}, {}, loads,
     "with --kv-cache-dtype fp8_e4m3fn: k_scale and v_scale as F32", kTgiLoader},
    {{fused}, {}, loads,
     "with --kv-cache-dtype fp8_e4m3fn: kv_scale for K and V, rounded to the model's dtype",
     kTgiLoader},
    {{compressed_tensors, cache_scheme}, {}, turns_on,
     "on CUDA with flashinfer, since 3.0, with scales of 1",
     "tgi PR 2761: models/__init__.py:493-514"},
    {{scales}, {}, ignores, kUnknownNames, kTgiLoader},
    {{}, {}, ignores, kNoScales, kTgiLoader},
    {{apart}, {per_head}, note, kNotDoubled, "tgi: layers/attention/rocm.py:172-228"},
    {{fused}, {apart}, note, kNotDoubled, "tgi: layers/attention/rocm.py:172-228"},
    {{fp8}, {fp8_weights}, note,
     "makes FP8 weights of the 16-bit ones as it loads them", "tgi: layers/fp8.py:200-237"},
};

constexpr RuntimeRule kVllmOldRules[] = {
    {{scale_file}, {}, ignores, "its option for scale files is gone since 0.7.0", kRemoved},
    {{}, {scales}, ignores, kNoScales, kOldKv},
    {{unquantised}, {}, ignores,
     "skips them with a warning, as there is no quantization_config: an FP8 cache runs with 1",
     "vllm v0.10.0: model_executor/models"},
    {{compressed_tensors, no_groups, experts_missed}, {}, fails,
     "`ignore` must name the experts too, as in 're:.*experts$'", "vllm v0.10.0: fused_moe"},
    {{compressed_tensors, attention_ignored}, {}, ignores,
     "`ignore` covers the attention, which then has no scales: an FP8 cache runs with 1",
     "vllm v0.10.0: compressed_tensors.py"},
    {{compressed_tensors, attn_head}, {}, fails,
     "takes the strategy 'tensor' alone, not 'attn_head'",
     "vllm v0.10.0: compressed_tensors.py, validate_kv_cache_scheme"},
    {{per_head}, {}, fails, "takes one scale per layer, not one per KV head", kOldKv},
    {{other_method}, {}, unknown,
     "whether it reads KV scales beside this quant_method was not looked at", kOldKv},
    {{fused, apart}, {}, misreads, kBothForK, "vllm: weight_utils.py:1365-1473"},
    {{v_only}, {}, fails, "asserts when V has a scale and K has none", kOldKv},
    {{k_only}, {}, loads, "with --kv-cache-dtype fp8: K's scale for V too", kOldKv},
    {{fused}, {}, loads,
     "with --kv-cache-dtype fp8: kv_scale for K and V, and calls it deprecated", kOldKv},
    {{apart}, {}, loads, kOldFlag, kOldKv},
    {{projections}, {}, loads, kOldFlag, "vllm PR 11787, PR 20419"},
    {{outputs}, {}, loads, kOldFlag, "vllm: quantization/fp8.py:225-236"},
    {{}, {}, unknown, "whether it knows the scales by these names is not known", kOldKv},
    {{fp8, experts}, {fp8_weights}, note,
     "makes FP8 weights of the experts, whatever ignored_layers says", "vllm v0.10.0: fp8.py"},
    {{scales}, {unquantised}, note, kE5m2, "vllm v0.10.0: attention/layer.py:156-157"},
    {{projections}, {}, note,
     "0.7.3 is reported to fail on these names", "vllm issue 15784", Basis::reports},
};

constexpr RuntimeRule kVllmRules[] = {
    {{scale_file}, {}, ignores, "its option for scale files is gone since 0.7.0", kRemoved},
    {{consolidated}, {}, ignores,
     "reads consolidated*.safetensors instead of these files", "vllm: default_loader.py:151-178"},
    {{compressed_tensors, cache_scheme}, {scales}, turns_on,
     "without a word, with scales of 1", kMainCt},
    {{}, {scales}, ignores, kNoScales, kMainKv},
    {{unquantised}, {}, fails,
     "takes no scales without a quantization_config: 'There is no module or parameter named'",
     kMainMapper},
    {{other_method}, {}, unknown,
     "whether it reads KV scales beside this quant_method was not looked at", kMainKv},
    {{modelopt}, {quant_algo}, fails,
     "takes no ModelOpt config without a quant_algo", "vllm: quantization/modelopt.py:314"},
    {{fused, apart}, {}, misreads, kBothForK, "vllm: quantization/base_config.py:204-226"},
    {{compressed_tensors, fused}, {}, misreads,
     "takes kv_scale for K alone: V runs with 1", kMainCt},
    {{compressed_tensors, k_only}, {}, misreads, "V, which has no scale, runs with 1", kMainCt},
    {{compressed_tensors, v_only}, {}, misreads, "K, which has no scale, runs with 1", kMainCt},
    {{compressed_tensors, per_head}, {attn_head}, unknown,
     "the scales are per KV head, and the config's strategy is another", kMainCt},
    {{compressed_tensors, cache_scheme, apart}, {}, turns_on, "k_scale and v_scale as F32", kAuto},
    {{compressed_tensors}, {}, unknown,
     "what it does without an FP8 kv_cache_scheme was not looked at", kMainCt},
    {{per_head}, {}, fails,
     "takes one scale per layer, not one per KV head", "vllm: quantization/kv_cache.py:18-39"},
    {{v_only}, {}, fails, "asserts when V has a scale and K has none", kMainKv},
    {{k_only}, {}, loads, "with --kv-cache-dtype fp8: K's scale for V too", kMainKv},
    {{modelopt, cache_scheme}, {}, turns_on, "one scale for K and one for V", kAuto},
    {{fused}, {}, loads, "with --kv-cache-dtype fp8: kv_scale for K and V", kMainKv},
    {{apart}, {}, loads, kFlag, kMainKv},
    {{projections}, {}, loads, kFlag, kMainKv},
    {{outputs}, {}, loads, kFlag, kMainKv},
    {{}, {}, unknown, "whether it knows the scales by these names is not known", kMainKv},
    {{compressed_tensors, scales}, {}, note, kNotDoubled, kMainCt},
    {{compressed_tensors, apart, attn_head}, {}, note,
     "only FlashAttention has one scale per head; elsewhere the largest is used", kMainCt},
    {{compressed_tensors, cache_scheme}, {}, note,
     "an FP8 cache nobody asked for is reported to fail on L4 and to be slower on RDNA3 and V100",
     "vllm issues 44879, 56992", Basis::reports},
};

constexpr RuntimeRule kSglangRules[] = {
    {{scale_file}, {with_model_type}, ignores,
     "a file without model_type does not pass its check: an FP8 cache runs with 1",
     "sglang: docs/advanced_features/quantized_kv_cache.md"},
    {{scale_file}, {}, loads,
     "with --quantization-param-path and --kv-cache-dtype fp8_e4m3: one scale for K and V",
     kSglangKv},
    {{}, {scales}, ignores, kNoScales, kSglangKv},
    {{unquantised}, {}, ignores,
     "has no scales without a quantization_config: an FP8 cache runs with 1", kSglangKv},
    {{per_head}, {}, unknown,
     "has one scale per layer; what it does with more is not known", kSglangKv},
    {{other_method}, {}, unknown,
     "whether it reads KV scales beside this quant_method was not looked at", kSglangKv},
    {{fused, apart}, {}, misreads, kBothForK, kSglangKv},
    {{compressed_tensors, cache_scheme, apart}, {}, loads,
     "with --kv-cache-dtype fp8_e4m3, since August 2026; before, kv_cache_scheme meant nothing "
     "to it", "sglang issue 35455", Basis::reports},
    {{compressed_tensors}, {}, unknown,
     "what it does with this form of compressed-tensors is not known",
     "sglang issue 35455", Basis::reports},
    {{fused}, {}, loads,
     "with --kv-cache-dtype fp8_e4m3: kv_scale for K and V, doubled for FNUZ GPUs", kSglangKv},
    {{apart}, {}, loads,
     "with --kv-cache-dtype fp8_e4m3: one scale for K and one for V, doubled for FNUZ GPUs",
     kSglangKv},
    {{projections}, {}, loads,
     "with --kv-cache-dtype fp8_e4m3: one scale for K and one for V, doubled for FNUZ GPUs",
     kSglangKv},
    {{outputs}, {}, loads,
     "with --kv-cache-dtype fp8_e4m3: one scale for K and one for V, doubled for FNUZ GPUs",
     kSglangKv},
    {{}, {}, unknown, "whether it knows the scales by these names is not known", kSglangKv},
    {{scale_file, with_model_type}, {}, note,
     "is reported to read the file and then not to use it", "sglang issue 18818", Basis::reports},
    {{scale_file, with_model_type}, {}, note, kNotDoubled, kSglangKv},
    {{scales, experts}, {}, note,
     "its loaders of Qwen3-MoE, Qwen2 and Mixtral are reported to drop KV scales",
     "sglang issue 39942", Basis::reports},
};

constexpr RuntimeRule kTransformersRules[] = {
    {{scale_file}, {}, ignores, kNoScaleFile, "transformers: modeling_utils.py"},
    {{compressed_tensors, cache_scheme}, {scales}, misreads,
     "with the package compressed-tensors, 5 runs with scales that nobody set", kTransformersRun,
     Basis::run},
    {{}, {scales}, ignores, "has no use for scales", "transformers: modeling_utils.py"},
    {{unquantised, single_file}, {}, ignores,
     "reads model.safetensors, neither the index nor the scales: the model works as before",
     "transformers: modeling_utils.py:3490-3510"},
    {{unquantised}, {}, ignores,
     "lists the scales among the weights that are not used: the model works as before",
     "transformers: modeling_utils.py"},
    {{compressed_tensors, cache_scheme, single_file, index}, {}, misreads,
     "reads model.safetensors and not the index: 5 then runs with scales that nobody set",
     kTransformersRun, Basis::run},
    {{compressed_tensors, cache_scheme, apart_0d}, {}, fails,
     "takes a k_scale of shape [1], as compressed-tensors writes it, not one of shape []",
     kTransformersRun, Basis::run},
    {{compressed_tensors, cache_scheme, apart}, {}, loads,
     "with the package compressed-tensors: 5 rounds K and V by these scales, 4.57 does not",
     kTransformersRun, Basis::run},
    {{compressed_tensors}, {}, unknown,
     "needs the package compressed-tensors and takes the model for a quantised one",
     "transformers: quantizers/quantizer_compressed_tensors.py"},
    {{fp8}, {fp8_weights}, unknown,
     "quant_method fp8 says that the weights are FP8, which these are not",
     "transformers: quantizers"},
    {{}, {}, unknown,
     "what it does beside this quant_method was not looked at", "transformers: quantizers"},
    {{compressed_tensors, attn_head}, {}, note,
     "compressed-tensors 0.12 does not know the strategy 'attn_head', and fails; 0.20 does",
     kTransformersRun, Basis::run},
};

constexpr RuntimeRule kTrtBuilderRules[] = {
    {{scale_file}, {}, ignores, kNoScaleFile, "tensorrt_llm: model_weights_loader"},
    {{}, {scales}, ignores, kNoScales, "tensorrt_llm: model_weights_loader"},
    {{projections}, {}, loads,
     "the larger of K's and V's scale for both", "tensorrt_llm: model_weights_loader"},
    {{}, {}, ignores,
     "reads k_proj.k_scale and v_proj.v_scale alone: an FP8 cache runs with 1",
     "tensorrt_llm: model_weights_loader"},
};

constexpr RuntimeRule kTrtPytorchRules[] = {
    {{scale_file}, {}, ignores, kNoScaleFile, "tensorrt_llm 00547a25: _torch/modules/attention.py"},
    {{}, {}, ignores,
     "has no scales for an FP8 cache, only for FP4",
     "tensorrt_llm 00547a25: _torch/modules/attention.py"},
};

// clang-format on

constexpr RuntimeColumn kColumns[] = {
    {"TGI", "branch of PR 2028", kTgiBranchRules},
    {"TGI", "2.4 and newer", kTgiRules},
    {"vLLM", "0.7.2 to 0.10", kVllmOldRules},
    {"vLLM", "main of August 2026", kVllmRules},
    {"SGLang", "main of August 2026", kSglangRules},
    {"transformers", "4.45 to 5", kTransformersRules},
    {"TensorRT-LLM", "engine builder", kTrtBuilderRules},
    {"TensorRT-LLM", "PyTorch backend", kTrtPytorchRules},
};

}  // namespace

const char* runtime_outcome_name(RuntimeOutcome outcome) {
  switch (outcome) {
    case loads:
      return "loads";
    case turns_on:
      return "turns FP8 on";
    case ignores:
      return "ignores";
    case misreads:
      return "misreads";
    case fails:
      return "fails";
    case unknown:
      return "not known";
    case note:
      break;
  }
  return "note";
}

std::span<const RuntimeColumn> runtime_columns() {
  return kColumns;
}

std::vector<RuntimeVerdict> runtime_verdicts(FactSet facts) {
  std::vector<RuntimeVerdict> verdicts;
  for (const RuntimeColumn& column : kColumns) {
    RuntimeVerdict verdict{&column, nullptr, {}};
    for (const RuntimeRule& rule : column.rules) {
      if (!facts.has_all(rule.with) || facts.has_any(rule.without)) continue;
      if (rule.outcome == note) {
        verdict.notes.push_back(&rule);
      } else if (!verdict.rule) {
        verdict.rule = &rule;
      }
    }
    FP8KV_ASSERT(verdict.rule);
    verdicts.push_back(std::move(verdict));
  }
  return verdicts;
}

}  // namespace fp8kv
