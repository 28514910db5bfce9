// A model folder as one input. Each file follows a line with its name.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace fp8kv::fuzz {

struct FolderFile {
  std::string name;  // without a folder
  std::string bytes;
};

inline constexpr size_t kMostFiles = 8;  // more files find nothing new

// At most kMostFiles files. No name leaves the folder.
std::vector<FolderFile> files_of(std::string_view input);
std::string input_of(const std::vector<FolderFile>& files);

// Writes these files to `folder`, and removes all others.
void lay_out(const std::vector<FolderFile>& files, const std::filesystem::path& folder);

// The files of each folder directly in `parent`, in the order of the folders' names.
std::vector<std::vector<FolderFile>> folders_below(const std::filesystem::path& parent);

}  // namespace fp8kv::fuzz
