#include "commands/parts/fit_runtime.h"

#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "core/cache/cache_type.h"
#include "policy/policies.h"
#include "scales/write/fate_of_copy.h"

namespace fp8kv {

std::string dtype_flag(const FitRuntime& runtime, const FitFormat& format) {
  if (runtime.server == nullptr) return format.name;
  if (is_e4m3(format.type)) return runtime.server->e4m3;
  return format.name == "nvfp4" ? runtime.server->nvfp4 : format.name;
}

FitRuntime runtime_of(const FitCommandOptions& options) {
  return with_context("--for", [&] {
    const std::vector<ChosenRuntime> chosen = choose_runtimes(options.runtime);
    if (chosen.size() != 1) {
      throw Error(cat(quote(options.runtime), " names ", chosen.size(), " versions, expected one"),
                  "name one, such as vllm@0.33", ErrorKind::usage);
    }
    const RuntimeCaches* caches = find_runtime_caches(chosen[0]);
    if (caches == nullptr) {
      throw Error(cat(runtime_text(chosen[0]), ": which caches it takes is not known"),
                  "name vllm, sglang, tgi or tensorrt-llm", ErrorKind::usage);
    }
    return FitRuntime{runtime_text(chosen[0]), chosen[0], caches, find_server(*chosen[0].column)};
  });
}

std::string take_dropped(const Checkpoint& checkpoint, const ModelConfig& config,
                         const FitRuntime& runtime, FitCommandOptions& options, Log& log) {
  // The FP8 cache of sparse attention has scales of its own there, not 1.
  if (config.indexer && config.indexer->is_dsa()) return "";
  const CopyFate fate = fate_of_copy(checkpoint, config, runtime.chosen);
  if (fate.use != CopyFate::Use::useless) return "";
  const std::string what = cat(runtime.text, ": ", fate.why);
  if (!options.out.empty()) {
    throw Error(cat("--out: ", what), "leave it out: a scale file would have no use",
                ErrorKind::usage);
  }
  log.note(cat("measuring scales of 1. ", what));
  options.scales.clear();
  options.policy = parse_policy("unit");
  return fate.why;
}

}  // namespace fp8kv
