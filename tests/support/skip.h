// Real models, tokenizers and texts are kept beside the repository. A test asks here for one, and
// returns if it is missing. ctest then counts the test as skipped.
#pragma once

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>

#include "support/places.h"

namespace fp8kv::test {

inline std::optional<std::filesystem::path> shared_data(const std::string& relative) {
  const std::filesystem::path path = source_dir() / ".." / "shared" / "data" / relative;
  if (std::filesystem::exists(path)) return path.lexically_normal();
  std::printf("[skipped] ../shared/data/%s is not there\n", relative.c_str());
  return std::nullopt;
}

}  // namespace fp8kv::test
