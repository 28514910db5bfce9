// The record that proves that this program made every file of a folder. The program replaces or
// removes no folder without this proof.
#pragma once

#include <filesystem>

namespace fp8kv {

// The name of the record. Its first line says what it is. Each other line has the bytes of one
// file, its mtime for a hard link ("-" otherwise), and its name, with control characters and '%' as
// %XX.
inline constexpr const char* kMadeFolderRecord = "fp8kv-files.txt";

// Writes the record of all files in `folder`, which this process has just filled.
void write_made_folder_record(const std::filesystem::path& folder);

// Throws unless `folder` is empty, or its record lists every file in it with its size, and no file
// changed since. A hard link must have the recorded mtime. Any other file must have an mtime no
// later than the record's, and so must its ctime while it has one name. `shown` is the folder's
// name in messages.
void check_made_folder(const std::filesystem::path& folder, const std::filesystem::path& shown);

// Removes the files that the record lists, the record, and folders that are then empty. Throws if
// anything else is in the folder, and keeps that. REQUIRES that check_made_folder has passed.
void remove_made_folder(const std::filesystem::path& folder);

// Removes `folder` and the folders in it. Throws if one of them has a file, and keeps that file.
void remove_empty_folders(const std::filesystem::path& folder);

}  // namespace fp8kv
