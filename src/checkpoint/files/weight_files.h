// The files of a model folder that have its weights: one file, or shards with an index. Folders in
// Mistral's own format have other names than those of Hugging Face, and shards without an index.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/values/mistral_terms.h"
#include "json/json.h"

namespace fp8kv {

inline constexpr const char* kIndexFile = "model.safetensors.index.json";
// The file that transformers reads instead of the index if both exist.
inline constexpr const char* kSingleFile = "model.safetensors";

// The names of the files in a folder.
struct FolderForm {
  const char* config;
  const char* single;
  const char* index;
  bool of_mistral = false;
};
inline constexpr FolderForm kHuggingFaceForm = {"config.json", kSingleFile, kIndexFile};
inline constexpr FolderForm kMistralForm = {kParamsFile, "consolidated.safetensors",
                                            "consolidated.safetensors.index.json", true};
// Mistral's form if the folder has params.json and no config.json, else that of Hugging Face.
const FolderForm& form_of(const std::filesystem::path& folder);

// Reads the config of a folder in the keys of transformers. `dtype` is the name of the weights'
// dtype, which params.json leaves out; "" if it is unknown.
Json read_config(const std::filesystem::path& folder, const std::string& dtype = "");

struct WeightFiles {
  std::vector<std::string> files;
  std::optional<Json> index;  // if it says which files are read
};
// Throws, with a remedy, for a folder without weights, with pickles only, or with shards that are
// not all there.
WeightFiles find_weight_files(const std::filesystem::path& folder, const FolderForm& form);

// The files that an index names, each once, sorted. Throws for a file outside the index's own
// folder, and for a name that does not end in ".safetensors".
std::vector<std::string> files_of_index(const Json& index);

// Also true for a symbolic link that leads nowhere: that is an error to report, not an absent file.
bool entry_exists(const std::filesystem::path& path);

inline constexpr const char* kFetchAgain =
    "copy the file into the folder, or fetch the model again: hf download OWNER/NAME --local-dir "
    "FOLDER";

}  // namespace fp8kv
