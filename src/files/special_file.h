// Outputs that are no files: devices, pipes, and names of open descriptors. What is written to them
// goes straight there. They are never replaced by a new file, as other outputs are: for root that
// would delete even /dev/null.
#pragma once

#include <filesystem>

namespace fp8kv {

// Whether `path` is such an output, or a link to one: a character device, a named pipe, a socket,
// or a descriptor of this process, such as /dev/stdout and /dev/fd/63 whatever is behind them.
bool is_special_file(const std::filesystem::path& path);

// A descriptor to write to, which the caller closes; -1, with errno, when it cannot be had.
// REQUIRES is_special_file(path). Waits for the reader of a named pipe.
int open_special_file(const std::filesystem::path& path);

}  // namespace fp8kv
