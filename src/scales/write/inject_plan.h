// Which files a model folder with other scales has, and where each comes from. Writes nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "files/file.h"
#include "scales/write/scale_patch.h"

namespace fp8kv {

// One file of the output.
struct PlannedFile {
  std::filesystem::path from;  // to link, or to take `parts` of
  std::string contents;        // to write, and what stands before `parts`
  std::vector<ByteRange> parts;
  uint64_t bytes = 0;

  bool is_linked() const { return contents.empty(); }
};

struct InjectPlan {
  std::map<std::filesystem::path, PlannedFile> files;  // by path below the output
  std::map<std::string, std::string> renamed;          // from the source's name to the output's
  std::set<std::filesystem::path> left_out;            // of the source: nothing is left of them
  std::vector<std::string> skipped;                    // what stays behind, with the reason
};

// Everything of the checkpoint's folder but hidden folders; the texts of the patch; the shards that
// hold what it drops without that. Throws for a link that leaves the folder and the hub's cache it
// lies in.
InjectPlan plan_injection(const Checkpoint& checkpoint, const ScalePatch& patch);

// Whether `inner` is `outer` or lies in it. Both absolute and free of links.
bool is_within(const std::filesystem::path& inner, const std::filesystem::path& outer);

}  // namespace fp8kv
