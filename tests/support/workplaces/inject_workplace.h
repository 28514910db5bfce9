// A folder with a tiny model to inject scales into, and room for outputs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/rng.h"
#include "scales/write/inject.h"
#include "support/expect_error.h"
#include "support/models/tiny_checkpoint.h"
#include "support/temp_dir.h"
#include "support/workplaces/inject_place.h"

namespace fp8kv::test {

inline KvScales scales_for(const TinyConfig& config, uint64_t seed = 1, bool per_head = false) {
  Rng rng(seed);
  return random_scales(config, rng, per_head);
}

// The model is in "model".
struct Workplace {
  explicit Workplace(const TinyConfig& model = tiny_config(), const TinyOptions& options = {})
      : config(model) {
    write_tiny_checkpoint(folder / "model", config, options);
  }

  std::filesystem::path model() const { return folder / "model"; }
  std::filesystem::path out() const { return folder / "out"; }
  Checkpoint open() const { return Checkpoint::open(model()); }
  InjectReport inject(const KvScales& scales,
                      const InjectOptions& options = {.target = "tgi"}) const {
    return inject_scales(open(), scales, out(), options);
  }
  std::string error(const KvScales& scales,
                    const InjectOptions& options = {.target = "tgi"}) const {
    return without_folder(error_of([&] { inject(scales, options); }));
  }
  std::string without_folder(std::string text) const {
    const std::string path = folder.path().string() + "/";
    for (size_t at; (at = text.find(path)) != text.npos;) text.erase(at, path.size());
    return text;
  }
  // Names in the folder, except "model".
  std::vector<std::string> beside() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
      if (entry.path() != model()) names.push_back(entry.path().filename().string());
    }
    return names;
  }

  TinyConfig config;
  TempDir folder;
};

}  // namespace fp8kv::test
