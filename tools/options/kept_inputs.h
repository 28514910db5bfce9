// Keeps outputs from overwriting inputs. Files are compared by device and inode, so links and other
// spellings of a path are found. Writes nothing.
#pragma once

#include <filesystem>
#include <vector>

#include "options/output_files.h"

namespace fp8kv {

struct InputPath {
  const char* flag;            // "--data", "MODEL"
  std::filesystem::path path;  // a file, or a folder with all its files; "-": stdin; "": none
};

// Adds one row for each of `paths`.
void add_inputs(std::vector<InputPath>& inputs, const char* flag,
                const std::vector<std::filesystem::path>& paths);

// Throws a usage Error if an existing output file is an input, a file of an input folder, or the
// target of a link there. Throws one too if an existing output folder holds an input.
// The refs of the hub's cache beside a snapshot count as inputs.
// In an input folder kv_cache_scales.json and outputs with OutputFile::own may remain from the last
// run.
void check_inputs_kept(const std::vector<InputPath>& inputs,
                       const std::vector<OutputFile>& outputs);

}  // namespace fp8kv
