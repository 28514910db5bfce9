// Sharded calibration in several processes, like a job array starts them.
#include <filesystem>
#include <future>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "support/program/run_cli.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

using Arguments = std::vector<std::string>;

Arguments calibrate(const std::string& out, const Arguments& more) {
  const std::filesystem::path datasets = test::source_dir() / "datasets";
  Arguments arguments = {"calibrate", (datasets / "demo").string(),
                         "--data",    (datasets / "calibration.txt").string(),
                         "--samples", "20",
                         "--seq-len", "48",
                         "--threads", "1",
                         "--quiet",   "--out",
                         out};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

void check_done(const test::CliResult& result) {
  CHECK(result.exit_code == 0);
  CHECK(result.err == "");
}

TEST_CASE("cli merge: shards run at the same time give the bytes of one run") {
  const test::TempDir folder;
  std::vector<std::future<test::CliResult>> running;
  for (int i = 0; i < 3; ++i) {
    running.push_back(std::async(std::launch::async, [&folder, i] {
      return test::run_cli(calibrate(cat("s", i, ".json"), {"--shard", cat(i, "/3")}),
                           folder.path());
    }));
  }
  for (auto& shard : running) check_done(shard.get());
  check_done(test::run_cli(calibrate("whole.json", {}), folder.path()));
  check_done(test::run_cli({"merge", "s2.json", "s0.json", "s1.json", "-o", "merged.json", "-q"},
                           folder.path()));
  const std::string whole = test::read_file(folder / "whole.json");
  CHECK(whole.size() > 1000);
  CHECK(test::read_file(folder / "merged.json") == whole);
}

TEST_CASE("cli merge: runs over different files give the bytes of one run over both") {
  const test::TempDir folder;
  folder.write("b.txt", "The people of England speak English. London is the capital.");
  folder.write("a.txt", "England is known for tea and rain, and 12 + 7 is 19.");
  const std::string demo = (test::source_dir() / "datasets" / "demo").string();
  const auto run = [&](const Arguments& data, const std::string& out) {
    Arguments arguments = {"calibrate", demo, "--granularity", "head", "-q", "-o", out, "--data"};
    arguments.insert(arguments.end(), data.begin(), data.end());
    check_done(test::run_cli(arguments, folder.path()));
  };
  run({"a.txt"}, "a.json");
  run({"b.txt"}, "b.json");
  run({"b.txt", "a.txt"}, "both.json");
  check_done(
      test::run_cli({"merge", "b.json", "a.json", "-o", "merged.json", "-q"}, folder.path()));
  CHECK(test::read_file(folder / "merged.json") == test::read_file(folder / "both.json"));
}

TEST_CASE("cli merge: scales of a part alone are used with a warning") {
  const test::TempDir folder;
  check_done(test::run_cli(calibrate("s.json", {"--shard", "1/3"}), folder.path()));
  const test::CliResult result =
      test::run_cli({"inject", (test::source_dir() / "datasets" / "demo").string(), "--scales",
                     "s.json", "--out", "model", "--dry-run"},
                    folder.path());
  CHECK(result.exit_code == 0);
  CHECK(result.err.find("warning: 's.json': is of 1 of 3 shards of a calibration; 'fp8kv merge' "
                        "adds the rest\n") != std::string::npos);
}

TEST_CASE("cli merge: refusals name the files and leave no output") {
  const test::TempDir folder;
  check_done(test::run_cli(calibrate("a.json", {}), folder.path()));
  check_done(test::run_cli(calibrate("b.json", {"--headroom", "2"}), folder.path()));
  const test::CliResult refused =
      test::run_cli({"merge", "a.json", "b.json", "-o", "out.json"}, folder.path());
  CHECK(refused.exit_code == 3);
  CHECK(refused.err ==
        "fp8kv: merge: 'b.json': the headroom is 2, but 'a.json' has 1\n"
        "help: only calibrations of one model, made in the same way, can be merged\n");
  CHECK_FALSE(std::filesystem::exists(folder / "out.json"));
  const test::CliResult shard =
      test::run_cli(calibrate("s.json", {"--shard", "3/3"}), folder.path());
  CHECK(shard.exit_code == 2);
  CHECK(shard.err ==
        "fp8kv: calibrate: --shard: '3/3' is not I/N with I less than N, such as 0/4 to 3/4\n"
        "help: see 'fp8kv calibrate --help'\n");
}

}  // namespace
}  // namespace fp8kv
