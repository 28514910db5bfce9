#include "commands/parts/fit_formats.h"

#include <optional>
#include <span>

#include "base/error.h"
#include "core/model/packed_formats.h"
#include "options/kv_dtype.h"

namespace fp8kv {
namespace {

constexpr const char* kUsual[] = {"fp8_e4m3", "int8_per_token_head", "nvfp4"};
// DeepSeek V3.2 and GLM-5 in vLLM, which then has no other FP8 cache.
constexpr const char* kSparse[] = {"fp8_ds_mla"};

bool caches_in_blocks(const RuntimeCaches& runtime, const ModelConfig& config) {
  return std::string_view(runtime.runtime) == "vLLM" && config.latent && config.indexer;
}

// The reason why the format cannot be chosen, or "".
std::string obstacle(const FitFormat& format, const RuntimeCaches& runtime,
                     const ModelConfig& config) {
  if (!takes_format(runtime, format.name)) {
    const std::vector<std::string> names(runtime.formats.begin(), runtime.formats.end());
    return cat(runtime.runtime, " takes ", join(names), ", not ", format.name);
  }
  if (format.name == "fp8_e4m3" && caches_in_blocks(runtime, config)) {
    return "vLLM's FP8 cache of sparse attention is fp8_ds_mla, not fp8_e4m3";
  }
  for (int64_t i = 0; i < config.n_layers(); ++i) {
    if (!config.writes_cache(i)) continue;
    const std::optional<CacheMisfit> misfit = cache_misfit(config, i, format.type);
    if (misfit) return cat(format.name, ": ", misfit->found, ", expected ", misfit->expected);
  }
  return "";
}

FitFormat format_at(const std::string& name, const RuntimeCaches& runtime,
                    const ModelConfig& config) {
  FitFormat format{name, *kv_dtype_from_name(name)};
  if (std::string_view(runtime.runtime) == "vLLM") {
    format.always_left = layers_left_by_vllm(name, config);
  }
  return format;
}

}  // namespace

std::vector<FitFormat> fit_formats(const std::vector<std::string>& asked,
                                   const RuntimeCaches& runtime, const ModelConfig& config,
                                   Log& log) {
  if (config.cache_layers() == 0) {
    throw Error("no layer of this model holds a KV cache", "there is nothing to choose");
  }
  std::vector<FitFormat> formats;
  for (const std::string& name : asked) {
    for (const FitFormat& before : formats) {
      if (before.name != name) continue;
      throw Error(cat("--kv-cache-dtype: ", name, " is asked for twice"), "name every cache once",
                  ErrorKind::usage);
    }
    formats.push_back(format_at(name, runtime, config));
    const std::string why = obstacle(formats.back(), runtime, config);
    if (why.empty()) continue;
    throw Error(cat("--kv-cache-dtype: ", why), "leave it out, or name another runtime with --for",
                ErrorKind::usage);
  }
  if (!asked.empty()) return formats;
  const bool in_blocks = caches_in_blocks(runtime, config);
  for (const char* name : in_blocks ? std::span<const char* const>(kSparse) : kUsual) {
    FitFormat format = format_at(name, runtime, config);
    const std::string why = obstacle(format, runtime, config);
    if (why.empty()) {
      formats.push_back(std::move(format));
    } else {
      log.note(cat("left out: ", why));
    }
  }
  if (!formats.empty()) return formats;
  throw Error(cat(runtime.runtime, " has no 8-bit or 4-bit cache for this model"),
              "name another runtime with --for", ErrorKind::usage);
}

}  // namespace fp8kv
