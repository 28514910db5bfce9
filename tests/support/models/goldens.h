// The random models of tests/golden/make_goldens.py, and the results of transformers for them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "json/json.h"
#include "support/places.h"

namespace fp8kv::test {

inline constexpr const char* kGoldens[] = {
    "llama-gqa", "mistral-window", "qwen2", "llama3-rope", "llama-linear", "llama-f16",
    "qwen2-bf16", "qwen2-yarn", "qwen3", "olmo2", "olmo2-gqa",
    // Models with experts.
    "qwen3-moe", "qwen3-moe-dense", "qwen3-moe-step", "mixtral", "mixtral-window", "mixtral-tied",
    "olmoe", "olmoe-norm", "olmoe-gqa", "granite-moe", "granite-moe-tied", "granite-moe-one",
    "qwen2-moe", "qwen2-moe-dense", "qwen2-moe-plain"};

struct Golden {
  std::filesystem::path folder;
  Json file;  // golden.json
  std::vector<int32_t> ids;
};

inline Golden golden(const char* name) {
  const std::filesystem::path folder = source_dir() / "tests/golden" / name;
  Golden made{folder, Json::read(folder / "golden.json"), {}};
  const Json ids = made.file.at("ids");
  for (size_t i = 0; i < ids.size(); ++i) {
    made.ids.push_back(static_cast<int32_t>(ids[i].as_int()));
  }
  return made;
}

}  // namespace fp8kv::test
