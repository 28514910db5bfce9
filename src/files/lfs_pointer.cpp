#include "files/lfs_pointer.h"

#include "base/error.h"

namespace fp8kv {

bool is_lfs_pointer(std::string_view head) {
  return head.starts_with("version https://git-lfs.github.com/spec");
}

void refuse_lfs_pointer(std::string_view head, const std::string& source) {
  if (!is_lfs_pointer(head)) return;
  throw Error(cat(source, ": is a git-LFS pointer, not the file itself"),
              "run 'git lfs pull' in the repository that it is from");
}

}  // namespace fp8kv
