// A new checkpoint folder that is an old one plus scales; the old one is never modified.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "core/scales.h"
#include "io/checkpoint.h"

namespace fp8kv {

inline constexpr const char* kScaleShard = "model-kv-scales.safetensors";

// The runtimes scales can be written for: a table, one row each.
struct InjectTarget {
  std::string name;  // "tgi"
  std::string summary;
};
std::span<const InjectTarget> inject_targets();

struct InjectOptions {
  std::string target = "tgi";
  LinkMode link = LinkMode::automatic;
  bool dry_run = false;
  bool overwrite = false;
};

// One file of the output and how it came there.
struct InjectedFile {
  std::string name;
  std::string how;  // "written", "reflinked", "hard-linked", "copied"
  uint64_t bytes = 0;
};

struct InjectReport {
  std::vector<InjectedFile> files;
  std::vector<std::string> skipped;  // what was left behind, with the reason
  uint64_t written_bytes = 0;
  std::vector<std::string> notes;
};

// Writes `out`: scale shard, index, config.json with kv_cache_torch_dtype; everything else linked.
// All under a temporary name, then one rename. Throws when the scales do not fit the model (layers,
// heads, fingerprint), when the checkpoint already carries scales, or when `out` exists.
InjectReport inject_scales(const Checkpoint& checkpoint, const KvScales& scales,
                           const std::filesystem::path& out, const InjectOptions& options);

}  // namespace fp8kv
