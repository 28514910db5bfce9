// Writes a new checkpoint folder: an old one plus scales. Never modifies the old one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/scales/scales.h"
#include "files/output/copy_file.h"
#include "scales/rules/runtime_facts.h"
#include "scales/write/inject_targets.h"
#include "scales/write/output_folder.h"

namespace fp8kv {

struct InjectOptions {
  std::string target;          // a name of inject_targets
  bool powers_of_two = false;  // raise each scale to one
  LinkMode link = LinkMode::automatic;
  bool dry_run = false;
  bool overwrite = false;
  bool replace = false;         // take out the checkpoint's own scales
  bool q_scales = false;        // write scales of Q, made from its maxima if needed
  bool accept_foreign = false;  // take scales of another model, and record that
  // Names for messages: how the caller spells the two options, and the quoted scale file.
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
  std::vector<std::string> skipped;  // source files left behind, with the reason
  uint64_t written_bytes = 0;        // written and copied bytes: the disk space of the output
  std::vector<std::string> notes;
  std::vector<std::string> warnings;
  FactSet facts;                        // the output's facts, for runtime_verdicts
  std::vector<int64_t> in_16_bit = {};  // layers that the scale file leaves in 16 bit
};

// Writes `out`: the scale shard, the index and the configs that the target's row asks for (see
// make_patch). Tensor files are linked and everything else is copied, except hidden folders. All
// goes under a temporary name, then one rename.
//
// Throws for a link that leaves both the folder and its hub cache. Throws if the scales do not fit
// the model (layers, heads, fingerprint), or if the target cannot take it. Throws if `out` is
// within the source or holds it, and if it exists; with `overwrite` only a model folder is
// replaced.
//
// Throws if the checkpoint already carries scales. With `replace` those are left out: only the
// shards that hold them are written again, with all other tensors in their old order.
//
// For a target that is a file, `out` is that file: the scales with the model's type and heads. A
// dry run does the same checks and planning, and writes nothing.
InjectReport inject_scales(const Checkpoint& checkpoint, const KvScales& scales,
                           const std::filesystem::path& out, const InjectOptions& options);

// The facts of the folder that inject_scales would write for this target. Scales that the
// checkpoint has are replaced. Throws if the target cannot take the model. REQUIRES scales that fit
// the checkpoint.
FactSet injected_facts(const Checkpoint& checkpoint, const KvScales& scales,
                       const std::string& target);

}  // namespace fp8kv
