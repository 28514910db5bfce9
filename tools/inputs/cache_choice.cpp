#include "inputs/cache_choice.h"

#include <algorithm>
#include <unistd.h>

#include "base/error.h"
#include "checkpoint/fingerprint.h"
#include "cli/kv_dtype.h"
#include "inputs/scale_source.h"
#include "scales/read/find_scales.h"

namespace fp8kv {
namespace {

constexpr const char* kWaysOut =
    "make some with 'fp8kv calibrate' and pass --scales FILE, or run with --unit-scales to have "
    "every scale 1";

// Scales given by hand or carried by the checkpoint; nullopt when there are none.
std::optional<KvScales> available_scales(const RunOptions& options, const Checkpoint& checkpoint,
                                         const ModelConfig& config, Log& log) {
  if (!options.scales.empty()) {
    KvScales scales = load_scales(options.scales, log);
    check_made_for(scales, checkpoint, config, quote(options.scales.string()));
    return scales;
  }
  std::optional<FoundScales> found = find_scales(checkpoint);
  if (!found) return std::nullopt;
  for (const std::string& note : found->notes) log.note("note: " + note);
  return std::move(found->scales);
}

CacheChoice choose_fp8(const RunOptions& options, DType dtype,
                       const std::optional<KvScales>& available, const std::string& model) {
  const Fp8Format format = *fp8_format(dtype);
  const std::string name = kv_dtype_name(dtype);
  if (fp8_spec(format).mantissa_bits == 2) {
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
    throw Error(cat(model, ": no KV scales found, and an FP8 cache needs them"), kWaysOut);
  }
  return {dtype, with_format(*available, format),
          cat(name, " with the scales of ",
              options.scales.empty() ? model : quote(options.scales.string()))};
}

// Rounded up, so that what a message asks for is enough.
std::string enough_bytes(uint64_t bytes) {
  constexpr uint64_t kKi = 1024, kMi = kKi * kKi;
  if (bytes < 16 * kMi) return cat((bytes + kKi - 1) / kKi, "KiB");
  return cat((bytes + kMi - 1) / kMi, "MiB");
}

// Of the device's free memory; the rest is for what grows with the first steps: partial results,
// recorded steps, the driver's own.
constexpr double kShareOfFree = 0.9;

uint64_t quarter_of_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
  return pages > 0 && bytes > 0 ? static_cast<uint64_t>(pages) / 4 * static_cast<uint64_t>(bytes)
                                : 0;
}

}  // namespace

CacheChoice choose_cache(const RunOptions& options, const Checkpoint& checkpoint,
                         const ModelConfig& config, Log& log) {
  const std::optional<DType> asked = kv_dtype_from_name(options.kv_cache_dtype);
  const std::string model = quote(options.model.string());
  const bool scale_flags = !options.scales.empty() || options.unit_scales;
  if (asked && !fp8_format(*asked)) {
    if (scale_flags) {
      throw Error(
          cat("scales are for an FP8 cache, not for --kv-cache-dtype ", options.kv_cache_dtype),
          "leave out --scales and --unit-scales, or choose fp8", ErrorKind::usage);
    }
    return {*asked, std::nullopt, kv_dtype_name(*asked)};
  }
  std::optional<KvScales> available;
  if (!options.unit_scales) available = available_scales(options, checkpoint, config, log);
  if (asked) return choose_fp8(options, *asked, available, model);
  const std::string promised = checkpoint.config().get_string("kv_cache_torch_dtype", "");
  if (available || scale_flags) {
    const Fp8Format format = available ? available->format : Fp8Format::e4m3fn;
    return choose_fp8(options, dtype_of(format), available, model);
  }
  if (!promised.empty()) {
    throw Error(cat(quote(checkpoint.config_path().string()), ": kv_cache_torch_dtype is ",
                    quote(promised), ", but there are no KV scales in ", model),
                kWaysOut);
  }
  return {config.dtype, std::nullopt, cat(kv_dtype_name(config.dtype), ", the model's own dtype")};
}

CacheDemand demand_of(std::span<const Request> requests, const GenerationOptions& options,
                      const ModelConfig& config) {
  CacheDemand demand{1, pages_needed(requests, options, config.max_seq_len), 0};
  for (const Request& request : requests) {
    const int64_t pages = KvCache::pages_for(longest(request, config.max_seq_len));
    demand.least = std::max(demand.least, pages);
    demand.all += pages;
  }
  return demand;
}

CacheDemand demand_of_stream(const GenerationOptions& options, const ModelConfig& config) {
  const int64_t at_once = options.max_batch * KvCache::pages_for(config.max_seq_len);
  return {1, at_once, kMostPages};
}

int64_t choose_pages(const RunOptions& options, const Backend& backend, const Runner& runner,
                     uint64_t page_bytes, const CacheDemand& demand) {
  const uint64_t padding = static_cast<uint64_t>(runner.padding_pages()) * page_bytes;
  const uint64_t fixed = runner.weight_bytes() + runner.working_bytes() + padding;
  const std::optional<DeviceMemory> memory = backend.memory();
  const std::optional<uint64_t> free = memory ? memory->free : std::nullopt;
  uint64_t room = 0;  // bytes for pages
  std::string where;
  if (options.gpu_memory > 0) {
    room = options.gpu_memory > fixed ? options.gpu_memory - fixed : 0;
    where = cat("--gpu-memory ", human_bytes(options.gpu_memory));
  } else if (free) {
    const auto usable = static_cast<uint64_t>(static_cast<double>(*free) * kShareOfFree);
    room = usable > padding ? usable - padding : 0;
    where = cat("the device has ", human_bytes(*free), " left");
  } else {
    const auto share = static_cast<int64_t>(quarter_of_memory() / page_bytes);
    return demand.all < kMostPages
               ? demand.at_once
               : std::clamp<int64_t>(demand.at_once, 1, std::max<int64_t>(share, 1));
  }
  const auto pages = static_cast<int64_t>(
      std::min<uint64_t>(room / page_bytes, static_cast<uint64_t>(kMostPages)));
  if (pages >= demand.least) return std::min(pages, std::max(demand.all, demand.at_once));
  const uint64_t needed = static_cast<uint64_t>(demand.least) * page_bytes;
  throw Error(
      cat(where, ": ", enough_bytes(needed),
          " of cache are needed for the longest prompt and its answer (",
          count_of(static_cast<uint64_t>(demand.least), "page"), ") beside ",
          human_bytes(runner.weight_bytes()), " of weights and ",
          human_bytes(runner.working_bytes() + padding), " of working memory, and ",
          human_bytes(room), " are left for it"),
      options.gpu_memory > 0
          ? cat("give at least ", enough_bytes(fixed + needed),
                ", a shorter prompt, fewer new tokens, or an FP8 cache")
          : "give a shorter prompt, fewer new tokens, a smaller --max-batch or an FP8 cache",
      ErrorKind::resource);
}

}  // namespace fp8kv
