#include "inputs/cache_choice.h"

#include "base/error.h"
#include "inputs/model_cache.h"
#include "inputs/scale_source.h"
#include "options/kv_dtype.h"

namespace fp8kv {
namespace {

constexpr const char* kWaysOut =
    "make some with 'fp8kv calibrate' and pass --scales FILE, or run with --unit-scales to have "
    "every scale 1";

// Scales given by hand or carried by the checkpoint; nullopt when there are none.
std::optional<KvScales> available_scales(const RunOptions& options, const Checkpoint& checkpoint,
                                         const ModelConfig& config, Log& log) {
  if (!options.scales.empty()) {
    return load_scales_for(options.scales, options.accept_foreign, checkpoint, config, log);
  }
  return scales_carried_by(checkpoint, config, log);
}

// The choice for an FP8 or NVFP4 cache, whose values are multiplied by stored scales.
CacheChoice choose_scaled(const RunOptions& options, const CacheType& dtype,
                          const std::optional<KvScales>& available, const std::string& model) {
  const std::optional<KvFormat> format = scales_for(dtype);
  const std::string name = kv_dtype_name(dtype);
  if (!format) {
    if (available) {
      throw Error(
          cat("--kv-cache-dtype ", name, ": ",
              options.scales.empty() ? cat("the scales that ", model, " carries")
                                     : cat("the scales of ", quote(options.scales.string())),
              " are for E4M3; an E5M2 cache runs without scales"),
          "use fp8_e4m3, or a checkpoint without scales", ErrorKind::usage);
    }
    return {dtype, std::nullopt, cat(name, ", which runs without scales")};
  }
  if (options.unit_scales) return {dtype, std::nullopt, cat(name, " with every scale 1")};
  if (!available) {
    throw Error(cat(model, ": no KV scales found, and an ", is_nvfp4(*format) ? "NVFP4" : "FP8",
                    " cache needs them"),
                kWaysOut);
  }
  const std::string source = options.scales.empty() ? model : quote(options.scales.string());
  return {dtype, with_context(source, [&] { return with_format(*available, *format); }),
          cat(name, " with the scales of ", source)};
}

// The choice for layers that are not skipped.
CacheChoice choose_type(const RunOptions& options, const Checkpoint& checkpoint,
                        const ModelConfig& config, Log& log) {
  const std::optional<CacheType> asked = kv_dtype_from_name(options.kv_cache_dtype);
  const std::string model = quote(options.model.string());
  const bool scale_flags = !options.scales.empty() || options.unit_scales;
  if (asked && !fp8_format(*asked) && !scales_for(*asked)) {
    if (scale_flags) {
      throw Error(cat("scales are for an FP8 cache",
                      is_compute_dtype(*asked) ? "" : " that makes none itself",
                      ", not for --kv-cache-dtype ", options.kv_cache_dtype),
                  "leave out --scales and --unit-scales, or choose fp8", ErrorKind::usage);
    }
    return {*asked, std::nullopt, kv_dtype_name(*asked)};
  }
  std::optional<KvScales> available;
  if (!options.unit_scales) available = available_scales(options, checkpoint, config, log);
  if (asked) return choose_scaled(options, *asked, available, model);
  const std::string promised = checkpoint.config().get_string("kv_cache_torch_dtype", "");
  if (available || scale_flags) {
    const KvFormat format = available ? available->format : KvFormat::e4m3fn;
    return choose_scaled(options, format, available, model);
  }
  if (!promised.empty()) {
    throw Error(cat(quote(checkpoint.config_path().string()), ": kv_cache_torch_dtype is ",
                    quote(promised), ", but there are no KV scales in ", model),
                kWaysOut);
  }
  return {config.dtype, std::nullopt, cat(kv_dtype_name(config.dtype), ", the model's own dtype")};
}

}  // namespace

CacheChoice choose_cache(const RunOptions& options, const Checkpoint& checkpoint,
                         const ModelConfig& config, Log& log) {
  CacheChoice choice = choose_type(options, checkpoint, config, log);
  std::vector<std::string> skipped = options.skip_layers;
  if (skipped.empty() && choice.scales) skipped = layer_names(choice.scales->skipped);
  choice.dtype = model_cache(choice.dtype.type, config.dtype, skipped, config);
  if (!choice.dtype.left.empty()) {
    const std::vector<size_t> left(choice.dtype.left.begin(), choice.dtype.left.end());
    choice.why += cat(", but ", layer_list(left), " in ", kv_dtype_name(config.dtype));
  }
  return choice;
}

}  // namespace fp8kv
