// Writes files that appear whole or not at all, and standard output.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "files/output/broken_pipe.h"

namespace fp8kv {

// Writes all of `bytes` to a new file. The caller must make it atomic and sync it.
void write_new_file(const std::filesystem::path& path, std::string_view bytes);

// Writes all of `bytes` to standard output. Throws BrokenPipe, or a resource Error.
void write_stdout(std::string_view bytes);

// Throws if write_file_atomically would refuse `path` for any bytes. Call it before long work. "",
// "-" and special files pass.
void check_output_file(const std::filesystem::path& path, bool overwrite);
// The error of check_output_file for an existing path. It still wants a remedy.
Error already_exists(const std::filesystem::path& path);
// Whether two outputs would be the same file: "a.json" and "./a.json", or "-" twice. Special files
// never collide, since writing to them continues.
bool same_output(const std::filesystem::path& a, const std::filesystem::path& b);

// The path that a symbolic link leads to, even if nothing is there; any other path unchanged. An
// output replaces the target of a link, and the link stays.
std::filesystem::path behind_links(const std::filesystem::path& path);

// Replaces `path` with `bytes` atomically: writes a temporary sibling, syncs and renames it.
// Refuses an existing file unless `overwrite`. "-" writes to standard output. A special file (see
// files/output/special_file.h) is written to, never replaced.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes,
                           bool overwrite);

// Renames a file, or renames a folder to a free name. Throws already_exists if `to` is taken; with
// `overwrite`, a file there is replaced. Does not sync.
void rename_into_place(const std::filesystem::path& from, const std::filesystem::path& to,
                       bool overwrite);

}  // namespace fp8kv
