// Recognises git-LFS pointers: in a clone without LFS, a few lines of text stand in place of a
// file's contents.
#pragma once

#include <string>
#include <string_view>

namespace fp8kv {

// Decides by the first bytes of a file. `head` needs up to 64 of them.
bool is_lfs_pointer(std::string_view head);

// Throws for a pointer, with a remedy. `source` is the name for messages.
void refuse_lfs_pointer(std::string_view head, const std::string& source);

}  // namespace fp8kv
