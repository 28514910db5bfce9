// A model folder as one input: its files, each behind a line that names it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace fp8kv::fuzz {

struct FolderFile {
  std::string name;  // of a file directly in the folder
  std::string bytes;
};

inline constexpr size_t kMostFiles = 8;  // more find nothing more

// At most kMostFiles. No name leaves the folder.
std::vector<FolderFile> files_of(std::string_view input);
std::string input_of(const std::vector<FolderFile>& files);

// Makes `folder` have these files and nothing else.
void lay_out(const std::vector<FolderFile>& files, const std::filesystem::path& folder);

// The folders directly below `parent`, in the order of their names.
std::vector<std::vector<FolderFile>> folders_below(const std::filesystem::path& parent);

}  // namespace fp8kv::fuzz
