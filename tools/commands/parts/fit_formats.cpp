#include "commands/parts/fit_formats.h"

#include <algorithm>
#include <optional>
#include <span>

#include "base/error.h"
#include "core/model/packed_formats.h"
#include "options/kv_dtype.h"
#include "policy/policies.h"

namespace fp8kv {
namespace {

constexpr const char* kUsual[] = {"fp8_e4m3", "int8_per_token_head", "nvfp4"};
// DeepSeek V3.2, V4 and GLM-5 in vLLM, which then has no other FP8 cache.
constexpr const char* kSparse[] = {"fp8_ds_mla"};

bool caches_in_blocks(const RuntimeCaches& runtime, const ModelConfig& config) {
  const bool in_blocks = (config.latent && config.indexer) || config.shared_row;
  return std::string_view(runtime.runtime) == "vLLM" && in_blocks;
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

// The formats in `asked`, or else the usual ones that runtime and model support.
std::vector<FitFormat> possible_formats(const std::vector<std::string>& asked,
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

// Leaves out formats that the policy makes no scales for, unless the user named formats or a scale
// file.
void drop_without_policy(const FitCommandOptions& options, std::vector<FitFormat>& formats,
                         Log& log) {
  const auto unfit = [&](const FitFormat& format) {
    const std::optional<KvFormat> scaled = scales_for(format.type);
    return scaled && is_nvfp4(*scaled) && !options.policy.kind->for_nvfp4();
  };
  if (!options.kv_cache_dtypes.empty() || !options.scales.empty()) return;
  for (const FitFormat& each : formats) {
    if (!unfit(each)) continue;
    log.note(cat("left out: ", each.name, ": policy ", policy_name(options.policy),
                 " makes no scales for it"));
  }
  std::erase_if(formats, unfit);
}

// With --out, leaves out formats that make their own scales, unless the user named them. Throws if
// no format is left that has scales to write.
void drop_without_scales(const FitCommandOptions& options, std::vector<FitFormat>& formats,
                         Log& log) {
  if (options.out.empty()) return;
  const auto unfit = [](const FitFormat& format) { return !scales_for(format.type); };
  if (std::all_of(formats.begin(), formats.end(), unfit)) {
    std::vector<std::string> names;
    for (const FitFormat& each : formats) names.push_back(each.name);
    throw Error(cat("--out: ", join(names),
                    names.size() == 1 ? " makes its own scales" : " make their own scales",
                    ", so there is no scale file to write"),
                "leave out --out, or name caches with scales: --kv-cache-dtype fp8",
                ErrorKind::usage);
  }
  if (!options.kv_cache_dtypes.empty()) return;
  for (const FitFormat& each : formats) {
    if (!unfit(each)) continue;
    log.note(cat("left out: ", each.name, ": makes its own scales, and --out asks for a file of ",
                 "scales; --kv-cache-dtype takes it in"));
  }
  std::erase_if(formats, unfit);
}

}  // namespace

std::vector<FitFormat> fit_formats(const FitCommandOptions& options, const RuntimeCaches& runtime,
                                   const ModelConfig& config, Log& log) {
  std::vector<FitFormat> formats = possible_formats(options.kv_cache_dtypes, runtime, config, log);
  drop_without_policy(options, formats, log);
  drop_without_scales(options, formats, log);
  return formats;
}

}  // namespace fp8kv
