// Readers of untrusted files as fuzzing sees them: a table, one row each.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fp8kv::fuzz {

struct Target {
  std::string name;
  // Reads `input` as the program would a file. May throw an Error and nothing else; what it accepts
  // it checks, with `require`.
  void (*run)(const std::string& input) = nullptr;
  // Makes an input whole again that was cut or grown, where a length or checksum would hide all
  // behind it. nullptr where nothing would.
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

// Ends the process, with the input saved, when it does not hold.
void require(bool holds, std::string_view what);

// A folder of this process, in memory where the system has such, for readers that want files.
const std::filesystem::path& work_folder();
void write(const std::filesystem::path& path, std::string_view bytes);
std::string read(const std::filesystem::path& path);

// Contents of all files below a folder whose names end in `ending`, in order of their paths.
std::vector<std::string> files_below(const std::filesystem::path& folder, std::string_view ending);

}  // namespace fp8kv::fuzz
