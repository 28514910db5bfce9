// A new checkpoint folder that is an old one plus scales; the old one is never modified.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "core/scales.h"
#include "io/checkpoint.h"
#include "io/scale_patch.h"

namespace fp8kv {

// The runtimes scales can be written for: a table, one row each.
struct InjectTarget {
  std::string name;  // "tgi"
  std::string summary;
  ScalePatch (*patch)(const Checkpoint& checkpoint, const KvScales& scales);
};
std::span<const InjectTarget> inject_targets();

struct InjectOptions {
  std::string target = "tgi";
  LinkMode link = LinkMode::automatic;
  bool dry_run = false;
  bool overwrite = false;
  std::string scales_name = "the scales";  // for messages: the quoted file
};

// One file of the output and how it came there.
struct InjectedFile {
  std::string name;  // relative to the output
  std::string how;   // "written", "reflinked", "hard-linked", "copied"; planned: "linked or copied"
  uint64_t bytes = 0;
};

struct InjectReport {
  std::vector<InjectedFile> files;   // by name
  std::vector<std::string> skipped;  // what was left behind, with the reason
  uint64_t written_bytes = 0;        // written and copied: what the output costs on disk
  std::vector<std::string> notes;
};

// Writes `out`: scale shard, index, config.json with kv_cache_torch_dtype; everything else linked,
// but for hidden folders. All under a temporary name, then one rename. Throws when the scales do
// not fit the model (layers, heads, fingerprint), when the checkpoint already carries scales, when
// `out` is within the source or holds it, and when it exists; with `overwrite` a model folder is
// replaced, any other folder is not. A dry run checks and plans the same and writes nothing.
InjectReport inject_scales(const Checkpoint& checkpoint, const KvScales& scales,
                           const std::filesystem::path& out, const InjectOptions& options);

}  // namespace fp8kv
