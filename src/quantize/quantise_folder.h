// A new checkpoint folder: an old one with its matrices in FP8, and if wanted KV scales. The old
// one is never modified.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "core/config.h"
#include "core/scales.h"
#include "quantize/schemes.h"
#include "quantize/shard_plan.h"
#include "scales/rules/runtime_facts.h"
#include "scales/write/inject.h"

namespace fp8kv {

struct QuantiseOptions {
  const Fp8Scheme* scheme = nullptr;
  int threads = 0;  // 0: one for each core
  bool dry_run = false;
  bool overwrite = false;
  bool resume = false;       // keep finished shards, and go on with them
  std::string version = {};  // of the program, which shards are kept for
};

struct QuantiseReport {
  std::vector<InjectedFile> files;   // by name
  std::vector<std::string> skipped;  // what was left behind, with the reason
  uint64_t written_bytes = 0;
  FolderPlan plan;                  // of the shards
  std::vector<std::string> ignore;  // modules that were left alone, as in config.json
  uint64_t kept_shards = 0;         // of an earlier run
  std::vector<std::string> notes;
  std::vector<std::string> warnings;
  std::optional<FactSet> facts;  // of a folder with scales, for runtime_verdicts
};

// Throws where quantise_folder would, whatever it will be asked to do with scales: for asking
// before a calibration.
void check_quantisable(const Checkpoint& checkpoint, const ModelConfig& config,
                       const std::filesystem::path& out, const QuantiseOptions& options);

// Writes `out`: shards as plan_shards has them, index and config.json; everything else copied, but
// for hidden folders and for files of weights that the checkpoint does not read. All under a
// temporary name, then one rename. `scales`: written too, as inject_scales does in its portable
// form; null: none. REQUIRES scales that were made for the model. `inputs`: of each matrix that is
// quantised, by name, the largest magnitude of what it multiplies, as InputRanges has it. REQUIRES
// it of schemes with static inputs, but for a dry run.
//
// With `resume` finished shards are kept in the folder OUT.partial until the output is there, and
// one of the same source, scheme and version is taken from there.
QuantiseReport quantise_folder(const Checkpoint& checkpoint, const ModelConfig& config,
                               const KvScales* scales, const std::map<std::string, float>* inputs,
                               const std::filesystem::path& out, const QuantiseOptions& options,
                               Log& log);

}  // namespace fp8kv
