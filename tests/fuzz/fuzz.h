// The fuzzed readers of untrusted files, one row each.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fp8kv::fuzz {

struct Target {
  std::string name;
  // Reads `input` like the program reads a file. May throw an Error and nothing else. Checks
  // accepted input with `require`.
  void (*run)(const std::string& input) = nullptr;
  // Repairs a cut or grown input if a wrong length or checksum would hide everything after it.
  // nullptr if no repair is needed.
  void (*repair)(std::string& input) = nullptr;
  // Inputs to begin with, from the tests' goldens in the project at `root`.
  std::vector<std::string> (*seeds)(const std::filesystem::path& root) = nullptr;
};

extern const Target kSafetensors;
extern const Target kCheckpoint;
extern const Target kCommands;
extern const Target kScaleFile;
extern const Target kNpz;
extern const Target kJinja;
extern const Target kMessages;
extern const Target kParquet;
extern const Target kParquetFooter;
extern const Target kQuantConfig;
extern const Target kTokenizer;

// Saves the input and ends the process unless `holds`.
void require(bool holds, std::string_view what);

// A folder of this process for readers that need files. It is in memory if the system has a file
// system there.
const std::filesystem::path& work_folder();
void write(const std::filesystem::path& path, std::string_view bytes);
std::string read(const std::filesystem::path& path);

// Contents of all files below a folder whose names end in `ending`, in order of their paths.
std::vector<std::string> files_below(const std::filesystem::path& folder, std::string_view ending);

}  // namespace fp8kv::fuzz
