// Real models, tokenizers and texts lie beside the repository, not in it. A test that needs one
// asks here, and returns when it is not there; ctest then counts it as skipped.
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
