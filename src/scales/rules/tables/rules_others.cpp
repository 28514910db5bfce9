#include "scales/rules/tables/rule_tables.h"

namespace fp8kv {
namespace {

using enum Fact;
using enum Family;
using enum RuntimeOutcome;

constexpr const char* kModeling = "transformers: modeling_utils.py";
constexpr const char* kRun4 =
    "run: transformers 4.46.3, 4.49.0, 4.53.3 and 4.57.1 with compressed-tensors 0.8.1, 0.9.2, "
    "0.10.2 and 0.12.2";
constexpr const char* kRun4Loads =
    "run: transformers 4.46.3, 4.49.0, 4.53.3 and 4.57.1 with compressed-tensors 0.8.1, 0.9.2, "
    "0.10.2 and 0.12.2, 4.57.6 with 0.20";
constexpr const char* kRun5 =
    "run: transformers 5.19 and 5.23 with compressed-tensors 0.17 and 0.20";
constexpr const char* kRun524 = "run: transformers 5.24 with compressed-tensors 0.20";
constexpr RuntimeVersion k449 = {4, 49}, k457 = {4, 57}, k5 = {5}, k524 = {5, 24};

// clang-format off
constexpr RuntimeRule kTransformersRules[] = {
    RuntimeRule{{}, {}, ignores, "runs no drafters", kModeling}.of({drafter}),
    {{scale_file}, {}, ignores, kNoScaleFile, kModeling},
    {{nvfp4_scheme}, {}, unknown, kNvfp4NotSeen, kModeling},
    RuntimeRule{{compressed_tensors, cache_scheme}, {scales}, misreads,
     "with the package compressed-tensors, runs with scales that nobody set", ""}
        .from(k5).until(k524).seen(kRun5),
    {{}, {scales}, ignores, "has no use for scales", kModeling},
    RuntimeRule{{unquantised, single_file}, {}, ignores,
     "reads model.safetensors, neither the index nor the scales: the model works as before",
     "transformers: modeling_utils.py:3490-3510"},
    RuntimeRule{{unquantised}, {}, ignores,
     "lists the scales among the weights that are not used: the model works as before", ""}
        .seen("run: transformers 4.46.3, 4.49.0, 4.53.3, 4.57.6, 5.19, 5.23 and 5.24"),
    RuntimeRule{{compressed_tensors, cache_scheme, single_file, index}, {}, misreads,
     "reads model.safetensors and not the index: runs with scales that nobody set", ""}
        .from(k5).until(k524).seen(kRun5),
    RuntimeRule{{compressed_tensors}, {}, unknown,
     "was not run with this family", "transformers: quantizers/quantizer_compressed_tensors.py"}
        .of({gpt2, gpt_bigcode, gpt_neox, falcon}).until(k449),
    RuntimeRule{{compressed_tensors}, {}, unknown,
     "has no model of this family but by the folder's own code", kModeling}.of({internlm2, baichuan}),
    RuntimeRule{{compressed_tensors}, {}, ignores,
     "has no scales where there is no k_proj: the model works as before", ""}
        .of({gpt2, gpt_bigcode, gpt_neox, falcon}).from(k449).seen("run: transformers 4.49.0, 4.53.3, 4.57.6, 5.23, 5.24"),
    RuntimeRule{{compressed_tensors, cache_scheme}, {}, ignores,
     "compressed-tensors 0.20 finds no caches in it and drops the scales: the model works as before", ""}
        .from(k524).seen(kRun524),
    RuntimeRule{{compressed_tensors, cache_scheme, apart_0d}, {}, fails,
     "takes a k_scale of shape [1], as compressed-tensors writes it, not one of shape []", ""}
        .until(k524).seen("run: transformers 4.46.3, 4.49.0, 4.53.3, 4.57.6, 5.23; 5.19 takes both"),
    RuntimeRule{{compressed_tensors, attn_head}, {}, fails,
     "compressed-tensors up to 0.12 does not know the strategy 'attn_head'", ""}
        .until(k457).seen(kRun4),
    RuntimeRule{{compressed_tensors, cache_scheme, apart}, {}, loads,
     "with the package compressed-tensors: loads them, and keeps a 16-bit cache", ""}
        .until(k5).rounding().seen(kRun4Loads),
    RuntimeRule{{compressed_tensors, cache_scheme, apart}, {}, loads,
     "with the package compressed-tensors: rounds K and V by these scales", ""}
        .from(k5).until(k524).rounding().seen(kRun5),
    RuntimeRule{{compressed_tensors, cache_scheme}, {apart}, ignores,
     "has no scales where there is no k_proj: the model works as before", ""}
        .of(kLatent).from(k449).until(k457).seen("run: transformers 4.53.3"),
    RuntimeRule{{compressed_tensors, cache_scheme}, {apart}, misreads,
     "with the package compressed-tensors, finds no self_attn.k_scale: runs with scales that nobody set", ""}
        .from(k449).until(k524).seen("run: transformers 4.49.0, 4.53.3, 4.57.6, 5.23"),
    RuntimeRule{{compressed_tensors}, {}, unknown,
     "needs the package compressed-tensors and takes the model for a quantised one",
     "transformers: quantizers/quantizer_compressed_tensors.py"},
    RuntimeRule{{fp8}, {fp8_weights}, fails, "does not know the quantization type fp8", ""}
        .until(k449).seen("run: transformers 4.46.3"),
    RuntimeRule{{compressed_tensors, attn_head}, {}, note,
     "compressed-tensors up to 0.12 does not know the strategy 'attn_head', and stops", ""}
        .from(k457).until(k5).seen(kRun4),
    RuntimeRule{{compressed_tensors}, {}, note,
     "stops with compressed-tensors 0.20: install 0.9 for 4.49, 0.10 for 4.53", ""}
        .from(k449).until(k457).seen("run: transformers 4.49.0 and 4.53.3 with compressed-tensors 0.20"),
    RuntimeRule{{fp8}, {fp8_weights}, fails, "needs a GPU for such a config, to make FP8 weights by it", ""}
        .from(k449).until(k5).seen("run: transformers 4.49.0, 4.53.3, 4.57.6"),
    RuntimeRule{{fp8}, {fp8_weights}, ignores, "has no use for them: the model works as before", ""}
        .from(k5).seen("run: transformers 5.23 and 5.24"),
    RuntimeRule{{modelopt}, {}, ignores,
     "skips a quantization that it does not know: the model works as before", ""}
        .from(k524).seen("run: transformers 5.24"),
    {{}, {}, unknown,
     "what it does beside this quant_method was not looked at", "transformers: quantizers"},
};

constexpr RuntimeRule kBuilderRules[] = {
    {{scale_file}, {}, ignores, kNoScaleFile, "tensorrt_llm: model_weights_loader"},
    {{nvfp4_scheme}, {}, unknown, kNvfp4NotSeen, "tensorrt_llm: model_weights_loader"},
    {{}, {scales}, ignores, kNoScales, "tensorrt_llm: model_weights_loader"},
    {{projections}, {}, loads,
     "the larger of K's and V's scale for both", "tensorrt_llm: model_weights_loader"},
    {{}, {}, ignores,
     "reads k_proj.k_scale and v_proj.v_scale alone: an FP8 cache runs with 1",
     "tensorrt_llm: model_weights_loader"},
};

constexpr RuntimeRule kPytorchRules[] = {
    {{scale_file}, {}, ignores, kNoScaleFile, "tensorrt_llm 00547a25: _torch/modules/attention.py"},
    {{nvfp4_scheme}, {}, unknown, kNvfp4NotSeen, "tensorrt_llm 00547a25: _torch/modules/attention.py"},
    {{}, {}, ignores,
     "has no scales for an FP8 cache, only for FP4",
     "tensorrt_llm 00547a25: _torch/modules/attention.py"},
};
// clang-format on

}  // namespace

std::span<const RuntimeRule> transformers_rules() {
  return kTransformersRules;
}

std::span<const RuntimeRule> trtllm_builder_rules() {
  return kBuilderRules;
}

std::span<const RuntimeRule> trtllm_pytorch_rules() {
  return kPytorchRules;
}

}  // namespace fp8kv
