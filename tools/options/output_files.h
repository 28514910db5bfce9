// The files that commands write, with the flags that name them.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "base/log.h"

namespace fp8kv {

// The advice for an output that exists already; see with_way_out().
inline constexpr const char* kReplaceOutput =
    "choose another output, or pass --force to replace it";

struct OutputFile {
  const char* flag;            // "--out"
  std::filesystem::path path;  // "-" for standard output; "": none
  bool is_folder = false;
  bool own = false;  // a file that fp8kv itself wrote in the last run, so it is no input
};

// Checks outputs before long work. Throws if a file cannot be written, and a usage Error if two
// outputs are the same file.
void check_output_files(const std::vector<OutputFile>& files, bool force);

// Warns of every temporary file beside these outputs, left by a killed run or in use by another
// run. Removes nothing.
void report_leftovers(const std::vector<OutputFile>& files, Log& log);

// Writes a file whole or not at all. See write_file_atomically.
void write_output_file(const std::filesystem::path& path, std::string_view bytes, bool force);

// Throws a usage Error if --json and --out both claim standard output. --out writes only scales
// there.
void check_json_apart(bool json, const std::filesystem::path& out);

}  // namespace fp8kv
