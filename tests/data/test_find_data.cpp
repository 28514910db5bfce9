#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "data/files/data_split.h"
#include "data/files/find_data.h"
#include "support/expect_error.h"
#include "support/program/capture_stderr.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

// The files found, relative to `folder`.
Names found(const test::TempDir& folder, const std::string& what, std::string* said = nullptr,
            const std::string& split = "") {
  Names names;
  const std::string text = test::stderr_of([&] {
    Log log;
    for (const fs::path& each : find_data(std::vector<fs::path>{folder / what}, split, log)) {
      names.push_back(each.lexically_relative(folder.path()).string());
    }
  });
  if (said) *said = text;
  return names;
}

std::string refused(const test::TempDir& folder, const std::string& what,
                    const std::string& split = "", ErrorKind kind = ErrorKind::input) {
  Log log(Verbosity::quiet);
  return test::error_of([&] { find_data(std::vector<fs::path>{folder / what}, split, log); }, kind);
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

TEST_CASE("find_data: of a data set the files of one split are taken") {
  const test::TempDir folder;
  for (const char* name :
       {"s/data/train-00000-of-00002.parquet", "s/data/train-00001-of-00002.parquet",
        "s/data/test-00000-of-00001.parquet", "s/data/test_sft-00000-of-00001-ab.parquet",
        "s/README.md"}) {
    folder.write(name, "x");
  }
  const Names train = {"s/data/train-00000-of-00002.parquet",
                       "s/data/train-00001-of-00002.parquet"};
  std::string said;
  CHECK(found(folder, "s", &said, "train") == train);
  CHECK(said ==
        cat(quote((folder / "s").string()), ": 2 files of data of 4, and 1 that are not\n"));
  CHECK(found(folder, "s", nullptr, "test") == Names{"s/data/test-00000-of-00001.parquet"});
  CHECK(found(folder, "s", nullptr, "test_sft") ==
        Names{"s/data/test_sft-00000-of-00001-ab.parquet"});
  const std::string path = quote((folder / "s").string());
  CHECK(refused(folder, "s", "", ErrorKind::usage) ==
        cat(path, ": is a data set of the splits 'test', 'test_sft' and 'train'"));
  CHECK(refused(folder, "s", "dev") ==
        cat(path, ": has no split 'dev', has 'test', 'test_sft' and 'train'"));
  CHECK(refused(folder, "s/README.md", "dev", ErrorKind::usage) ==
        "--split dev: only folders have splits, and there is none");
}

TEST_CASE("find_data: splits are told by names of files and folders, as datasets does") {
  CHECK(split_of("train.jsonl") == "train");
  CHECK(split_of("my-dev_set.jsonl.gz") == "validation");
  CHECK(split_of("valid/part1.txt") == "validation");
  CHECK(split_of("a/eval3.csv") == "test");
  CHECK(split_of("data/extra-00000-of-00012.parquet") == "extra");
  CHECK(split_of("trains/latest.txt") == "");
  CHECK(split_of("contest.txt") == "");
}

TEST_CASE("find_data: of the hub's cache it is the snapshot of main") {
  const test::TempDir folder;
  const std::string entry = "datasets--org--name/";
  folder.write(entry + "refs/main", "c0ffee");
  folder.write(entry + "blobs/1", "x");
  folder.write(entry + "snapshots/dead/train.jsonl", "x");
  std::filesystem::create_directories(folder / (entry + "snapshots/c0ffee"));
  fs::create_symlink("../../blobs/1", folder / (entry + "snapshots/c0ffee/train.jsonl"));
  const Names main = {entry + "snapshots/c0ffee/train.jsonl"};
  CHECK(found(folder, "datasets--org--name") == main);
  CHECK(found(folder, "datasets--org--name", nullptr, "train") == main);
  fs::remove(folder / (entry + "blobs/1"));
  CHECK(refused(folder, "datasets--org--name") ==
        cat(quote((folder / main[0]).string()), ": is a link to a file that is not there"));
  fs::remove(folder / (entry + "refs/main"));
  CHECK(refused(folder, "datasets--org--name") ==
        cat(quote((folder / "datasets--org--name").string()),
            ": has 2 snapshots, and none of them is its revision main"));
}

TEST_CASE("find_data: what is there under a name with such characters is no pattern") {
  const test::TempDir folder;
  folder.write("a[1].txt", "x");
  folder.write("a1.txt", "x");
  CHECK(found(folder, "a[1].txt") == Names{"a[1].txt"});
  CHECK(found(folder, "missing.txt") == Names{"missing.txt"});
}

}  // namespace fp8kv
