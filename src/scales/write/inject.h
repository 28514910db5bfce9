// A new checkpoint folder that is an old one plus scales; the old one is never modified.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/scales.h"
#include "files/file.h"
#include "scales/rules/runtime_facts.h"
#include "scales/write/inject_targets.h"
#include "scales/write/output_folder.h"

namespace fp8kv {

struct InjectOptions {
  std::string target;          // of inject_targets
  bool powers_of_two = false;  // raise each scale to one
  LinkMode link = LinkMode::automatic;
  bool dry_run = false;
  bool overwrite = false;
  bool replace = false;   // take out the scales that the checkpoint has
  bool q_scales = false;  // write scales of Q, made of the maxima of Q if need be
  // For messages: what the caller calls `replace`, and the quoted file.
  bool accept_foreign = false;  // take scales of another model, and record that
  std::string replace_name = "replace";
  std::string accept_foreign_name = "accept_foreign";
  std::string scales_name = "the scales";
};

// One file of the output.
struct InjectedFile {
  std::string name;  // relative to the output
  FileMade made = FileMade::written;
  uint64_t bytes = 0;
};

struct InjectReport {
  std::vector<InjectedFile> files;   // by name
  std::vector<std::string> skipped;  // what was left behind, with the reason
  uint64_t written_bytes = 0;        // written and copied: what the output costs on disk
  std::vector<std::string> notes;
  std::vector<std::string> warnings;
  FactSet facts;  // of the output, for runtime_verdicts
};

// Writes `out`: scale shard, index and configs as the target's row says (see make_patch);
// files of tensors linked and everything else copied, but for hidden folders. All under a temporary
// name, then one rename. Throws for a link that leaves the folder and the hub's cache it lies in.
// Throws when the scales do not fit the model (layers, heads, fingerprint), when the target cannot
// take it, when `out` is within the source or holds it, and when it exists; with `overwrite` a
// model folder is replaced, any other folder is not.
//
// Throws too when the checkpoint already carries scales; with `replace` they are left out: only the
// shards that hold them are written anew, all other tensors at their old place in order.
//
// For a target that is a file, `out` is that file: the scales with the model's type and heads.
// A dry run checks and plans the same and writes nothing.
InjectReport inject_scales(const Checkpoint& checkpoint, const KvScales& scales,
                           const std::filesystem::path& out, const InjectOptions& options);

}  // namespace fp8kv
