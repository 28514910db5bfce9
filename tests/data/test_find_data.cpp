#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "data/files/find_data.h"
#include "support/capture_stderr.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

// Relative to `folder`.
Names found(const test::TempDir& folder, const std::string& what, std::string* said = nullptr) {
  Names names;
  const std::string text = test::stderr_of([&] {
    Log log;
    for (const fs::path& each : find_data(std::vector<fs::path>{folder / what}, log)) {
      names.push_back(each.lexically_relative(folder.path()).string());
    }
  });
  if (said) *said = text;
  return names;
}

std::string refused(const test::TempDir& folder, const std::string& what) {
  Log log(Verbosity::quiet);
  return test::error_of([&] { find_data(std::vector<fs::path>{folder / what}, log); });
}

void fill(const test::TempDir& folder) {
  for (const char* name :
       {"d/part-10.jsonl", "d/part-2.jsonl.gz", "d/B.CSV", "d/sub/a.txt.zst", "d/README.md",
        "d/.hidden.jsonl", "d/.git/x.json", "d/dataset_infos.json", "d/x.gz", "empty/README.md"}) {
    folder.write(name, "x");
  }
}

}  // namespace

TEST_CASE("find_data: a folder is its files of known kinds, in the order of their paths") {
  const test::TempDir folder;
  fill(folder);
  std::string said;
  CHECK(found(folder, "d", &said) ==
        Names{"d/B.CSV", "d/part-10.jsonl", "d/part-2.jsonl.gz", "d/sub/a.txt.zst"});
  CHECK(said == cat(quote((folder / "d").string()), ": 4 files of data, and 3 that are not\n"));
  CHECK(refused(folder, "empty") == cat(quote((folder / "empty").string()),
                                        ": has no data: 1 file, none of them .txt, .json, .jsonl, "
                                        ".ndjson, .csv, .tsv, .parquet"));
}

TEST_CASE("find_data: a pattern is the files that fit it, in the order of their paths") {
  const test::TempDir folder;
  fill(folder);
  CHECK(found(folder, "d/part-*") == Names{"d/part-10.jsonl", "d/part-2.jsonl.gz"});
  CHECK(found(folder, "*/[Bp]*.[Cj]*") == Names{"d/B.CSV", "d/part-10.jsonl", "d/part-2.jsonl.gz"});
  CHECK(found(folder, "d/s?b") == Names{"d/sub/a.txt.zst"});
  CHECK(refused(folder, "d/*.xyz") ==
        cat(quote((folder / "d/*.xyz").string()), ": no file fits this pattern"));
}

TEST_CASE("find_data: what is there under a name with such characters is no pattern") {
  const test::TempDir folder;
  folder.write("a[1].txt", "x");
  folder.write("a1.txt", "x");
  CHECK(found(folder, "a[1].txt") == Names{"a[1].txt"});
  CHECK(found(folder, "missing.txt") == Names{"missing.txt"});
}

}  // namespace fp8kv
