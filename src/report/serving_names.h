// The names in commands that serve a model.
#pragma once

#include <filesystem>
#include <string>

namespace fp8kv {

// Each as words of a shell.
struct ServingNames {
  std::string model = "MODEL";
  std::string scales = "SCALES.json";
  std::string copy = "MODEL-fp8";  // the folder to make
};

// `scales` is their file; `model` may be "" where it is not known.
ServingNames serving_names(const std::filesystem::path& scales, const std::filesystem::path& model);

// "Llama-3" of "models/Llama-3/" and of the cache's "models--org--Llama-3/snapshots/0a1b"; "" where
// the path has no name of its own.
std::string model_name(const std::filesystem::path& model);

}  // namespace fp8kv
