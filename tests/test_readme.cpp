// README's tables are those of the code.
#include <filesystem>

#include <doctest/doctest.h>

#include "base/text.h"
#include "io/architectures.h"
#include "io/dialects.h"
#include "support/skip.h"
#include "support/temp_dir.h"

using namespace fp8kv;

TEST_CASE("readme: lists every architecture in the words of the table") {
  const std::string readme = test::read_file(test::source_dir() / "README.md");
  for (const Architecture& row : architectures()) {
    CAPTURE(row.name);
    CHECK(readme.find(cat("| `", row.name, "` | ", row.summary, " |")) != readme.npos);
  }
}

TEST_CASE("readme: lists every dialect in the words of the table") {
  const std::string readme = test::read_file(test::source_dir() / "README.md");
  for (const Dialect& row : dialects()) {
    std::vector<std::string> tensors;
    for (const std::string& form : tensor_forms(row)) tensors.push_back(cat("`", form, "`"));
    const std::string line =
        cat("| `", row.name, "` | ", join(tensors, ", "), " | ", row.written_by, " | ",
            row.config_says, " | ", row.k_measured, " |\n");
    CAPTURE(line);
    CHECK(readme.find(line) != readme.npos);
  }
}

// A test that is not built cannot fail.
TEST_CASE("tests: every test file has a line in CMake") {
  const std::string lists = test::read_file(test::source_dir() / "tests/CMakeLists.txt");
  for (const auto& entry : std::filesystem::directory_iterator(test::source_dir() / "tests")) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("test_") || !name.ends_with(".cpp")) continue;
    CAPTURE(name);
    CHECK(lists.find("  " + name + "\n") != lists.npos);
  }
}
