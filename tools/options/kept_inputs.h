// What a command reads is not what it writes: by the file's identity (device and inode), so that
// links and other spellings of a path do not hide it. Writes nothing.
#pragma once

#include <filesystem>
#include <vector>

#include "options/output_files.h"

namespace fp8kv {

struct InputPath {
  const char* flag;            // "--data", "MODEL"
  std::filesystem::path path;  // a file, or a folder with all that is in it; "-": stdin; "": none
};

// A row for each of `paths`.
void add_inputs(std::vector<InputPath>& inputs, const char* flag,
                const std::vector<std::filesystem::path>& paths);

// Throws a usage Error where an output that is there already is one of the inputs, a file of an
// input folder or what a link in it leads to; or, for a folder, holds one of them. The references
// of the hub's cache beside a snapshot count as inputs. In an input folder kv_cache_scales.json and
// OutputFile::own may be there from the last run.
void check_inputs_kept(const std::vector<InputPath>& inputs,
                       const std::vector<OutputFile>& outputs);

}  // namespace fp8kv
