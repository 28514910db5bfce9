#include "scales/rules/runtime_caches.h"

#include <algorithm>
#include <iterator>

namespace fp8kv {
namespace {

constexpr std::string_view kFp8[] = {"fp8_e4m3", "fp8_e5m2", "fp8_ds_mla"};
constexpr std::string_view kFp8Alone[] = {"fp8_e4m3", "fp8_e5m2"};
constexpr std::string_view kOfTensorRtLlm[] = {"fp8_e4m3", "nvfp4"};
constexpr std::string_view kVllm020[] = {
    "fp8_e4m3",        "fp8_e5m2",           "fp8_ds_mla", "int8_per_token_head",
    "turboquant_k8v4", "fp8_per_token_head", "nvfp4"};
constexpr std::string_view kVllm025[] = {
    "fp8_e4m3",        "fp8_e5m2",           "fp8_ds_mla", "int8_per_token_head",
    "turboquant_k8v4", "fp8_per_token_head", "nvfp4",      "int4_per_token_head"};
constexpr std::string_view kVllm028[] = {
    "fp8_e4m3",        "fp8_e5m2",           "fp8_ds_mla", "int8_per_token_head",
    "turboquant_k8v4", "fp8_per_token_head", "nvfp4",      "int4_per_token_head",
    "nvfp4_4over6"};

// Sources for vLLM: CacheDType and kv_cache_dtype_skip_layers in vllm/config/cache.py of the
// released wheels 0.15, 0.18, 0.19, 0.20, 0.22 to 0.28, and 0.30 to 0.33.
constexpr RuntimeCaches kTable[] = {
    {"vLLM", {0, 7, 2}, kFp8, false},  {"vLLM", {0, 19}, kFp8, true},
    {"vLLM", {0, 20}, kVllm020, true}, {"vLLM", {0, 25}, kVllm025, true},
    {"vLLM", {0, 28}, kVllm028, true}, {"SGLang", {}, kFp8Alone, false},
    {"TGI", {}, kFp8Alone, false},     {"TensorRT-LLM", {}, kOfTensorRtLlm, false},
};

}  // namespace

const RuntimeCaches* find_runtime_caches(const ChosenRuntime& runtime) {
  const RuntimeCaches* found = nullptr;
  for (const RuntimeCaches& row : kTable) {
    if (std::string_view(row.runtime) != runtime.column->runtime) continue;
    if (!runtime.number || !(*runtime.number < row.first)) found = &row;
  }
  return found;
}

std::span<const int64_t> skippable(const ChosenRuntime& runtime, std::span<const int64_t> layers) {
  const RuntimeCaches* caches = find_runtime_caches(runtime);
  return caches != nullptr && caches->skips_layers ? layers : std::span<const int64_t>();
}

bool takes_format(const RuntimeCaches& caches, std::string_view format) {
  return std::find(caches.formats.begin(), caches.formats.end(), format) != caches.formats.end();
}

}  // namespace fp8kv
