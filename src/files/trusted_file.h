// Whether code may be loaded from a file: who can change it, or put another in its place.
#pragma once

#include <filesystem>
#include <string>

namespace fp8kv {

// Says why not, or "". The file and every folder above it must belong to root, to this user or to
// the owner of the running program, and nobody else may write there. Folders with the sticky bit
// (/tmp) may be writable, since what lies in them cannot be replaced by others. A group counts as
// others unless it has the owner's number (a user's private group) or is root's.
std::string why_not_trusted(const std::filesystem::path& file);

}  // namespace fp8kv
