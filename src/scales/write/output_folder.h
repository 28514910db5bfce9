// Output folders: whether one may be made, and how its files come there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "files/file.h"
#include "scales/write/inject_plan.h"

namespace fp8kv {

// How a file of the output came there.
enum class FileMade {
  written,
  rewritten,  // a shard without some of its tensors
  reflinked,
  hard_linked,
  copied,
  linked_or_copied  // planned: what the file system allows
};

const char* made_name(FileMade made);  // "hard-linked"

// Throws when `out` is within the source or holds it, when its parent is not there, and when it
// exists. With `overwrite`, a folder that exists must pass check_made_folder. `is_file`: the output
// is a file.
void check_output(const std::filesystem::path& source_folder, const std::filesystem::path& out,
                  bool is_file, bool overwrite);

// Whether a file is of those that weights are stored in, of whatever runtime: by its ending.
bool holds_tensors(const std::filesystem::path& file);

// How carry_out will bring a file along, as far as that is known before.
FileMade planned_making(const PlannedFile& file, LinkMode link);
// Brings one file to `to`, and says how. Settings that are edited in place are copied, whatever
// `link` says: they are not to change the source's.
FileMade carry_out(const PlannedFile& file, const std::filesystem::path& to, LinkMode link);

// File operations of the standard library throw their own type.
template <typename Work>
auto as_our_error(Work&& work) {
  try {
    return work();
  } catch (const std::filesystem::filesystem_error& error) {
    fail_system(error.path1().string(), "use", error.code().value());
  }
}

}  // namespace fp8kv
