// Decides whether code may be loaded from a file, by who can change or replace it.
#pragma once

#include <filesystem>
#include <string>

namespace fp8kv {

// Returns the reason against loading, or "". The file and every folder above it must belong to
// root, to this user or to the owner of the running program. Nobody else may write there. Folders
// with the sticky bit (/tmp) may be writable, since others cannot replace files in them. A group
// counts as others unless it has the owner's number (a user's private group) or is root's.
std::string why_not_trusted(const std::filesystem::path& file);

}  // namespace fp8kv
