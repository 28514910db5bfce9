// The files that commands write, with the flags that name them.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "base/log.h"

namespace fp8kv {

// The way out of an output that exists already; see with_way_out().
inline constexpr const char* kReplaceOutput =
    "choose another output, or pass --force to replace it";

struct OutputFile {
  const char* flag;            // "--out"
  std::filesystem::path path;  // "-" for standard output; "": none
  bool is_folder = false;
  bool own = false;  // a file of the program's own: there from the last run, it is no input
};

// For asking before long work. Throws where one of the files could not be written, and a usage
// Error where two of them are the same.
void check_output_files(const std::vector<OutputFile>& files, bool force);

// Warns of every temporary beside these outputs: of killed runs, and of runs that are writing now.
// Removes nothing.
void report_leftovers(const std::vector<OutputFile>& files, Log& log);

// See write_file_atomically.
void write_output_file(const std::filesystem::path& path, std::string_view bytes, bool force);

// Throws a usage Error for --json with an --out that is standard output, which holds the scales
// and nothing else.
void check_json_apart(bool json, const std::filesystem::path& out);

}  // namespace fp8kv
