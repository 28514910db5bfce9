// A file of a git repository that was cloned without what git-LFS keeps elsewhere: a few lines of
// text in the place of the contents.
#pragma once

#include <string>
#include <string_view>

namespace fp8kv {

// By the first bytes of a file, of which all should be there up to 64.
bool is_lfs_pointer(std::string_view head);

// Throws for a pointer, with the way out. `source` is the name for messages.
void refuse_lfs_pointer(std::string_view head, const std::string& source);

}  // namespace fp8kv
