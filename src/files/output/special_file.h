// Outputs that are not regular files: devices, pipes, and names of open descriptors. Bytes go
// straight to them. Unlike other outputs they are never replaced by a new file: for root that would
// delete even /dev/null.
#pragma once

#include <filesystem>

namespace fp8kv {

// Whether `path` is a special output or a link to one: a character device, a named pipe, a socket,
// or a descriptor of this process. /dev/stdout and /dev/fd/63 are such descriptors, whatever they
// lead to.
bool is_special_file(const std::filesystem::path& path);

// Opens a descriptor for writing, which the caller closes; -1, with errno, if that fails. Waits for
// the reader of a named pipe. REQUIRES is_special_file(path).
int open_special_file(const std::filesystem::path& path);

}  // namespace fp8kv
