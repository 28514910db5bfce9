#include "scales/rules/tables/rule_tables.h"

namespace fp8kv {
namespace {

using enum Fact;
using enum Family;
using enum RuntimeOutcome;

constexpr const char* kBranchLoader = "tgi refs/pull/2028: utils/weights.py:770-812";
constexpr const char* kBranchRun = "run: TGI's loaders of pull request 2028";
constexpr const char* kTgiLoader = "tgi: layers/attention/kv_cache.py";
constexpr const char* kTgiCompressed = "tgi: layers/compressed_tensors/loader.py";
constexpr const char* kTgiRun = "run: TGI's loaders of 2.4.0, 3.0.0 and 3.3.7";
constexpr const char* kE5m2 = "--kv-cache-dtype fp8_e5m2 fails with such a model";
constexpr const char* kFlagApart = "with --kv-cache-dtype fp8_e4m3fn: k_scale and v_scale as F32";
constexpr RuntimeVersion kTgi3 = {3, 0};

// clang-format off
constexpr RuntimeRule kBranchRules[] = {
    {{scale_file}, {}, ignores, kNoScaleFile, kBranchLoader},
    {{}, {scales}, ignores, kNoScales, kBranchLoader},
    RuntimeRule{{}, {fused}, ignores, "reads kv_scale alone: an FP8 cache runs with 1", ""}
        .seen(kBranchRun),
    {{}, {llama_baichuan_phi3}, fails,
     "takes an FP8 cache for llama, baichuan and phi3 alone", kBranchLoader},
    {{fused_array}, {}, fails, "takes a kv_scale of shape [] alone", kBranchLoader},
    {{}, {torch_dtype}, fails,
     "needs kv_cache_torch_dtype in config.json: float8_e4m3fn or float8_e4m3fnuz", kBranchLoader},
    {{}, {unquantised}, unknown, "was made for FP16 and BF16 models", kBranchLoader},
    RuntimeRule{{}, {}, loads,
     "with --kv-cache-dtype fp8: kv_scale for K and V, doubled for FNUZ GPUs", ""}.doubles().seen(kBranchRun),
    {{fused}, {}, note, kE5m2, kBranchLoader},
};

constexpr RuntimeRule kTgiRules[] = {
    {{scale_file}, {}, ignores, kNoScaleFile, kTgiLoader},
    RuntimeRule{{}, {}, unknown,
     "has no model of this family: what it does with scales when transformers runs it was not "
     "looked at", "tgi: models/__init__.py"}.of({internlm2}),
    {{compressed_tensors, no_groups, linear_missed}, {}, fails,
     "a linear layer is in no group and not ignored: 'Cannot find compressed-tensors target'",
     kTgiCompressed},
    {{compressed_tensors}, {frozen}, fails,
     "needs the quantization_status frozen or compressed", kTgiCompressed},
    {{compressed_tensors, no_groups, ignore_unclear}, {}, unknown,
     "fails unless `ignore` covers every linear layer, which cannot be told here", kTgiCompressed},
    RuntimeRule{{apart, per_head}, {}, fails, "takes one scale per layer, not one per KV head", ""}
        .seen(kTgiRun),
    RuntimeRule{{compressed_tensors, cache_scheme, apart}, {}, loads, kFlagApart, ""}
        .until(kTgi3).seen(kTgiRun),
    RuntimeRule{{compressed_tensors, cache_scheme, apart}, {}, turns_on,
     "on CUDA with flashinfer; else with --kv-cache-dtype fp8_e4m3fn: k_scale and v_scale as F32",
     ""}.from(kTgi3).seen(kTgiRun),
    RuntimeRule{{apart}, {}, loads, kFlagApart, ""}.seen(kTgiRun),
    RuntimeRule{{fused}, {}, loads,
     "with --kv-cache-dtype fp8_e4m3fn: kv_scale for K and V", ""}.rounding().seen(kTgiRun),
    RuntimeRule{{compressed_tensors, cache_scheme}, {}, turns_on,
     "on CUDA with flashinfer, with scales of 1", "tgi PR 2761: models/__init__.py:493-514"}
        .from(kTgi3).without_scales(),
    {{scales}, {}, ignores, kUnknownNames, kTgiLoader},
    {{}, {}, ignores, kNoScales, kTgiLoader},
    RuntimeRule{{apart}, {per_head}, note, kNotDoubled, "tgi: layers/attention/rocm.py:172-228"}
        .keeps(),
    RuntimeRule{{fused}, {apart}, note, kNotDoubled, "tgi: layers/attention/rocm.py:172-228"}
        .keeps(),
    RuntimeRule{{fp8}, {fp8_weights}, note,
     "makes FP8 weights of the 16-bit ones as it loads them", ""}.seen(kTgiRun),
    {{queries}, {}, note, kQNotSeen, kTgiLoader},
};
// clang-format on

}  // namespace

std::span<const RuntimeRule> tgi_branch_rules() {
  return kBranchRules;
}

std::span<const RuntimeRule> tgi_rules() {
  return kTgiRules;
}

}  // namespace fp8kv
