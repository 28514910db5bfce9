// The record that proves that this program made every file of a folder. Without that proof no
// folder is replaced or removed.
#pragma once

#include <filesystem>

namespace fp8kv {

// The record's name in the folder. Its first line says what it is. Each other line has the bytes of
// one file, its mtime where it is a hard link ("-" otherwise), and its name, with control
// characters and '%' as %XX.
inline constexpr const char* kMadeFolderRecord = "fp8kv-files.txt";

// Writes the record of all files in `folder`, which this process has just filled.
void write_made_folder_record(const std::filesystem::path& folder);

// Throws unless `folder` is empty, or its record lists every file in it, each with its size, and no
// file changed since. A hard link must have the recorded mtime. Another file must have an mtime
// and, while it has one name, a ctime that are not later than the record's. `shown`: its name in
// messages.
void check_made_folder(const std::filesystem::path& folder, const std::filesystem::path& shown);

// Removes the files that the record lists, the record, and folders that are then empty. REQUIRES
// check_made_folder to have passed. Throws when anything else lies there, which then stays.
void remove_made_folder(const std::filesystem::path& folder);

// Removes `folder` and the folders in it. Throws when one of them holds a file, which stays.
void remove_empty_folders(const std::filesystem::path& folder);

}  // namespace fp8kv
