// Plans the files of a model folder with new scales, and where each comes from. Writes nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "files/output/copy_file.h"
#include "scales/write/scale_patch.h"

namespace fp8kv {

// One file of the output.
struct PlannedFile {
  std::filesystem::path from;  // the file to link, or the source of `parts`
  std::string contents;        // the text to write, before any `parts`
  std::vector<ByteRange> parts;
  uint64_t bytes = 0;

  bool is_linked() const { return contents.empty(); }
};

struct InjectPlan {
  std::map<std::filesystem::path, PlannedFile> files;  // keys are paths relative to the output
  std::map<std::string, std::string> renamed;          // from the source's name to the output's
  std::set<std::filesystem::path> left_out;  // source files that have no counterpart in the output
  std::vector<std::string> skipped;          // source files that stay behind, with the reason
};

// Plans every file of the checkpoint's folder except hidden folders, the patch's texts, and the
// shards without the tensors that the patch drops. Throws for a link that leaves both the folder
// and its hub cache.
InjectPlan plan_injection(const Checkpoint& checkpoint, const ScalePatch& patch);

// Whether `inner` is `outer` or lies in it. Both paths must be absolute and free of links.
bool is_within(const std::filesystem::path& inner, const std::filesystem::path& outer);

}  // namespace fp8kv
