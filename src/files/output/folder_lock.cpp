#include "files/output/folder_lock.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>

#include "base/interrupt.h"

namespace fp8kv {

FolderLock::FolderLock(const std::filesystem::path& folder)
    : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  while (descriptor_.get() >= 0 && ::flock(descriptor_.get(), LOCK_EX) != 0 && errno == EINTR) {
    check_interrupt();
  }
}

}  // namespace fp8kv
