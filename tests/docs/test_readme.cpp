// README's tables are those of the code.
#include <filesystem>

#include <doctest/doctest.h>

#include "base/text.h"
#include "checkpoint/architectures.h"
#include "checkpoint/checkpoint.h"
#include "scales/dialects.h"
#include "scales/rules/runtime_rules.h"
#include "scales/write/inject.h"
#include "support/skip.h"
#include "support/temp_dir.h"
#include "support/tiny_checkpoint.h"

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

TEST_CASE("readme: says of every runtime what it does with what each target writes") {
  const test::TempDir folder;
  ModelConfig config = test::tiny_config();
  config.dtype = DType::f16;
  test::write_tiny_checkpoint(folder / "model", config);
  KvScales scales;
  for (int64_t i = 0; i < config.n_layers; ++i) scales.layers.push_back({{0.5f}, {0.25f}});
  std::string head = "| runtime |";
  std::vector<std::string> lines;
  for (const RuntimeColumn& column : runtime_columns()) {
    lines.push_back(cat("| ", column.runtime, ", ", column.versions, " |"));
  }
  for (const InjectTarget& target : inject_targets()) {
    if (target.is_file) continue;
    head += cat(" `", target.name, "` |");
    const InjectReport report =
        inject_scales(Checkpoint::open(folder / "model"), scales, folder / target.name,
                      {.target = target.name, .dry_run = true});
    const std::vector<RuntimeVerdict> verdicts = runtime_verdicts(report.facts);
    for (size_t i = 0; i < lines.size(); ++i) {
      lines[i] += cat(" ", outcome_name(verdicts[i].rule->outcome), " |");
    }
  }
  const std::string readme = test::read_file(test::source_dir() / "README.md");
  CHECK(readme.find(head + "\n") != readme.npos);
  for (const std::string& line : lines) {
    CAPTURE(line);
    CHECK(readme.find(line + "\n") != readme.npos);
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
