// Tells whether a file is still the one that was opened: a model is read for hours, and what is
// computed from half an old and half a new one is of neither. Looks at no contents.
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <string>
#include <type_traits>
#include <utility>

#include "base/error.h"

namespace fp8kv {

// What changes with every write to a file, and when another one takes its name.
struct FileStamp {
  uint64_t bytes = 0;
  int64_t modified_ns = 0;
  uint64_t inode = 0;
  bool operator==(const FileStamp&) const = default;
};

// Of an open file.
FileStamp stamp_of(int descriptor, const std::filesystem::path& path);

// "'FILE': changed while it was read: HOW".
Error changed_while_read(const std::filesystem::path& path, const std::string& how);

// Throws that unless `path` still has this stamp.
void check_unchanged(const std::filesystem::path& path, const FileStamp& before);

// Runs `work`, which reads `files`, and then files.check_unchanged(). Also where an Error leaves
// `work`, since half a file looks like one that is wrong; but for interrupts.
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
