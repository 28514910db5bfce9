#include "model_folder.h"

#include <algorithm>

#include "fuzz.h"

namespace fp8kv::fuzz {
namespace {

constexpr std::string_view kFile = "\n--8<-- ";

std::string plain_name(std::string_view line) {
  std::string name;
  for (const char c : line.substr(0, 64)) {
    name += (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ? c : '_';
  }
  return name.empty() || name == "." || name == ".." ? "_" : name;
}

}  // namespace

std::vector<FolderFile> files_of(std::string_view input) {
  std::vector<FolderFile> files;
  size_t at = input.find(kFile);
  while (at != input.npos && files.size() < kMostFiles) {
    const size_t name_at = at + kFile.size();
    const size_t line_end = input.find('\n', name_at);
    if (line_end == input.npos) break;
    at = input.find(kFile, line_end);
    const size_t end = std::min(at, input.size());
    files.push_back({plain_name(input.substr(name_at, line_end - name_at)),
                     std::string(input.substr(line_end + 1, end - line_end - 1))});
  }
  return files;
}

std::string input_of(const std::vector<FolderFile>& files) {
  std::string input;
  for (const FolderFile& file : files) {
    input += std::string(kFile) + file.name + "\n" + file.bytes;
  }
  return input;
}

void lay_out(const std::vector<FolderFile>& files, const std::filesystem::path& folder) {
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  for (const FolderFile& file : files) write(folder / file.name, file.bytes);
}

std::vector<std::vector<FolderFile>> folders_below(const std::filesystem::path& parent) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(parent)) {
    if (entry.is_directory()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::vector<FolderFile>> folders;
  for (const auto& path : paths) {
    std::vector<FolderFile>& files = folders.emplace_back();
    for (const auto& file : std::filesystem::directory_iterator(path)) {
      if (file.is_regular_file()) {
        files.push_back({file.path().filename().string(), read(file.path())});
      }
    }
    std::sort(files.begin(), files.end(),
              [](const FolderFile& a, const FolderFile& b) { return a.name < b.name; });
  }
  return folders;
}

}  // namespace fp8kv::fuzz
