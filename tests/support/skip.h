// Tests that cannot run here, or not wholly. A test says why and returns, or leaves a part out.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "support/places.h"

namespace fp8kv::test {

// Prints "[skipped] REASON" when all tests of this process have ended, so that ctest counts the
// test as skipped. If a test fails, the mark is left out: the failure counts.
void skip(const std::string& reason);

// Called by main after the tests.
void print_skipped(bool failed);

// A file or folder of the real models, tokenizers and texts that are kept beside the repository.
// Skips the test if it is missing.
inline std::optional<std::filesystem::path> shared_data(const std::string& relative) {
  const std::filesystem::path path = source_dir() / ".." / "shared" / "data" / relative;
  if (std::filesystem::exists(path)) return path.lexically_normal();
  skip("../shared/data/" + relative + " is not there");
  return std::nullopt;
}

}  // namespace fp8kv::test
