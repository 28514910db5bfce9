// Writes a new checkpoint folder: an old one with its matrices in FP8, and optionally with KV
// scales. Never modifies the old one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "core/model/config.h"
#include "core/scales/scales.h"
#include "quantize/linear_choice.h"
#include "quantize/schemes.h"
#include "quantize/shard_plan.h"
#include "scales/rules/runtime_facts.h"
#include "scales/write/inject.h"

namespace fp8kv {

struct QuantizeFolderOptions {
  const Fp8Scheme* scheme = nullptr;
  int threads = 0;  // 0: one per core
  bool dry_run = false;
  bool overwrite = false;
  bool resume = false;       // keep finished shards, and reuse those of an earlier run
  std::string version = {};  // the program's version; kept shards must have the same
  // Also written, in the portable form of inject_scales; null: none. REQUIRES scales made for this
  // model.
  const KvScales* scales = nullptr;
  // The amax of the inputs of each quantised matrix, by name, from InputRanges. REQUIRED by schemes
  // with static inputs, except for a dry run; null for other schemes.
  const std::map<std::string, float>* inputs = nullptr;
};

struct QuantizeReport {
  std::vector<InjectedFile> files;   // by name
  std::vector<std::string> skipped;  // source files left behind, with the reason
  uint64_t written_bytes = 0;
  FolderPlan plan;                  // for the shards
  std::vector<std::string> ignore;  // modules that stay unquantised, as in config.json
  uint64_t kept_shards = 0;         // reused from an earlier run
  std::vector<std::string> notes;
  std::vector<std::string> warnings;
  std::optional<FactSet> facts;  // the facts of a folder with scales, for runtime_verdicts
};

// Returns the matrices to quantise. Throws if quantize_folder would throw for any scales. Call it
// before a calibration.
LinearChoice check_quantisable(const Checkpoint& checkpoint, const ModelConfig& config,
                               const std::filesystem::path& out,
                               const QuantizeFolderOptions& options);

// Writes `out`: shards as planned by plan_shards, the index and config.json. Everything else is
// copied, except hidden folders and weight files that the checkpoint does not read. All goes under
// a temporary name, then one rename. `choice`: from check_quantisable, for the same arguments.
//
// With `resume`, finished shards stay in the folder OUT.partial until the output exists. Shards of
// the same source, scheme and version are reused from there.
QuantizeReport quantize_folder(const Checkpoint& checkpoint, const LinearChoice& choice,
                               const std::filesystem::path& out,
                               const QuantizeFolderOptions& options, Log& log);

}  // namespace fp8kv
