// Tells whether a file is still the one that was opened. A model is read for hours, and results
// from half an old and half a new file belong to no model. Looks at no contents.
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <string>
#include <type_traits>
#include <utility>

#include "base/error.h"

namespace fp8kv {

// Values that change with every write to a file, or when another file takes its name.
struct FileStamp {
  uint64_t bytes = 0;
  int64_t modified_ns = 0;
  uint64_t inode = 0;
  bool operator==(const FileStamp&) const = default;
};

// The stamp of an open file.
FileStamp stamp_of(int descriptor, const std::filesystem::path& path);

// "'FILE': changed while it was read: HOW".
Error changed_while_read(const std::filesystem::path& path, const std::string& how);

// Throws changed_while_read unless `path` still has this stamp.
void check_unchanged(const std::filesystem::path& path, const FileStamp& before);

// Runs `work`, which reads `files`, and then files.check_unchanged(). Also checks if `work` throws
// an Error, since half a file looks like a wrong one; but not for interrupts.
template <typename Files, std::invocable Work>
auto with_unchanged(const Files& files, Work&& work) {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Work>>) {
      std::forward<Work>(work)();
      files.check_unchanged();
    } else {
      auto result = std::forward<Work>(work)();
      files.check_unchanged();
      return result;
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::interrupted) files.check_unchanged();
    throw;
  }
}

}  // namespace fp8kv
