// The steps that all outputs share: make, write, sync and close a file, and look at its folder.
// Each throws an Error that names the file.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "files/descriptor.h"

namespace fp8kv {

// Makes a new file. `shown` stands for the path in messages.
FileDescriptor create_new(const std::filesystem::path& path, const std::filesystem::path& shown);
// Writes all of `bytes`. `name` stands for the file in messages. Throws BrokenPipe for standard
// output that nobody reads any more.
void write_all(int descriptor, std::string_view bytes, const std::string& name);
void sync_file(const FileDescriptor& file, const std::filesystem::path& path);
void close_file(FileDescriptor& file, const std::filesystem::path& path);

// Some network file systems cannot sync folders; there this does nothing.
void sync_directory(const std::filesystem::path& path);
// The folder of `path`, "." for a name alone.
std::filesystem::path parent_of(const std::filesystem::path& path);
// Whether anything is at `path`, a broken link too.
bool exists_at(const std::filesystem::path& path);
// Throws unless something can be made at `path`: its parent must exist and be writable.
void check_parent(const std::filesystem::path& path);

}  // namespace fp8kv
