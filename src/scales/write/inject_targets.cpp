#include "scales/write/inject_targets.h"

#include <vector>

#include "base/error.h"

namespace fp8kv {
namespace {

using Block = InjectTarget::Block;

const std::vector<InjectTarget>& all_targets() {
  static const std::vector<InjectTarget> kRows = {
      {.name = "portable",
       .summary = "every runtime that can: k_scale and v_scale under each name that one of them "
                  "reads, and a compressed-tensors block",
       .runtime = "a folder for all runtimes",
       .apart = true,
       .portable = true,
       .block = Block::compressed_tensors,
       .drafts = true,
       .nvfp4 = true},
      {.name = "tgi",
       .summary = "Text Generation Inference: kv_scale, k_scale and v_scale",
       .runtime = "TGI",
       .fused = true,
       .apart = true},
      {.name = "tgi-2028",
       .summary = "the branch of TGI's pull request 2028: kv_scale alone",
       .runtime = "TGI's branch",
       .fused = true},
      {.name = "vllm",
       .summary = "vLLM 0.7.2 and newer: k_scale, v_scale and a compressed-tensors block",
       .runtime = "vLLM",
       .apart = true,
       .block = Block::compressed_tensors,
       .drafts = true,
       .per_head = true,
       .nvfp4 = true,
       .queries = true},
      {.name = "vllm-rocm",
       .summary = "vLLM on AMD MI300, which must double scales: the same with an fp8 block",
       .runtime = "vLLM",
       .apart = true,
       .block = Block::fp8,
       .drafts = true,
       .queries = true},
      {.name = "sglang",
       .summary = "SGLang: as for vLLM, one scale per layer",
       .runtime = "SGLang",
       .apart = true,
       .block = Block::compressed_tensors,
       .drafts = true},
      {.name = "json",
       .summary = "a scale file alone, checked against the model: OUT is a .json",
       .runtime = "a JSON reader",
       .is_file = true,
       .per_head = true,
       .nvfp4 = true},
  };
  return kRows;
}

struct Refusal {
  const char* target;
  QuantMethod method;
  const char* reason;
};

constexpr const char* kOnlyUnquantised =
    "its form is one of FP16 and BF16 models: the branch was never merged, and other weights were "
    "never tried with it";
constexpr const char* kNotRead =
    "only a config of compressed-tensors, fp8 or modelopt makes it read KV scales";
constexpr const char* kQuarkLayers =
    "a config of Quark must describe the output of every K and V projection, which is not written "
    "here";
constexpr const char* kNotDoubled =
    "with such a config vLLM does not double the scales on MI300, so that values saturate early";

constexpr Refusal kRefusals[] = {
    {"tgi", QuantMethod::modelopt,
     "ModelOpt calls the scales k_proj.k_scale and v_proj.v_scale, which TGI does not read"},
    {"tgi", QuantMethod::quark,
     "Quark calls the scales k_proj.output_scale and v_proj.output_scale, which TGI does not read"},
    {"tgi-2028", QuantMethod::compressed_tensors, kOnlyUnquantised},
    {"tgi-2028", QuantMethod::fp8, kOnlyUnquantised},
    {"tgi-2028", QuantMethod::modelopt, kOnlyUnquantised},
    {"tgi-2028", QuantMethod::quark, kOnlyUnquantised},
    {"tgi-2028", QuantMethod::other, kOnlyUnquantised},
    {"portable", QuantMethod::quark, kQuarkLayers},
    {"portable", QuantMethod::other, kNotRead},
    {"vllm", QuantMethod::quark, kQuarkLayers},
    {"vllm", QuantMethod::other, kNotRead},
    {"vllm-rocm", QuantMethod::compressed_tensors, kNotDoubled},
    {"vllm-rocm", QuantMethod::quark, kQuarkLayers},
    {"vllm-rocm", QuantMethod::other, kNotRead},
    {"sglang", QuantMethod::quark, kQuarkLayers},
    {"sglang", QuantMethod::other, kNotRead},
};

}  // namespace

std::span<const InjectTarget> inject_targets() {
  return all_targets();
}

const InjectTarget& inject_target_at(const std::string& name) {
  std::vector<std::string> names;
  for (const InjectTarget& target : all_targets()) {
    if (target.name == name) return target;
    names.push_back(target.name);
  }
  throw Error(cat("no target ", quote(name), did_you_mean(name, names)),
              cat("scales can be written for ", join(names, " or ")), ErrorKind::usage);
}

std::string why_refused(const InjectTarget& target, QuantMethod method) {
  for (const Refusal& refusal : kRefusals) {
    if (refusal.target == target.name && refusal.method == method) return refusal.reason;
  }
  return "";
}

}  // namespace fp8kv
