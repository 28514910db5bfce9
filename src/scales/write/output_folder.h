// Output folders: checks whether one may be made, and puts its files there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "files/output/copy_file.h"
#include "scales/write/inject_plan.h"

namespace fp8kv {

// How a file got into the output.
enum class FileMade {
  written,
  rewritten,  // a shard without some of its tensors
  reflinked,
  hard_linked,
  copied,
  linked_or_copied  // planned: links or copies, depending on the file system
};

const char* made_name(FileMade made);  // "hard-linked"

// Throws if `out` is within the source or holds it, if its parent does not exist, and if `out`
// exists. With `overwrite`, an existing folder must pass check_made_folder. `is_file`: the output
// is a file.
void check_output(const std::filesystem::path& source_folder, const std::filesystem::path& out,
                  bool is_file, bool overwrite);

// Whether the file's extension is one that some runtime stores weights in.
bool holds_tensors(const std::filesystem::path& file);

// How carry_out will transfer a file, as far as it is known in advance.
FileMade planned_making(const PlannedFile& file, LinkMode link);
// Transfers one file to `to`, and returns how. Settings that people edit in place are always
// copied, whatever `link` says, so that edits do not change the source's.
FileMade carry_out(const PlannedFile& file, const std::filesystem::path& to, LinkMode link);

// Turns std::filesystem errors into ours.
template <typename Work>
auto as_our_error(Work&& work) {
  try {
    return work();
  } catch (const std::filesystem::filesystem_error& error) {
    fail_system(error.path1().string(), "use", error.code().value());
  }
}

}  // namespace fp8kv
