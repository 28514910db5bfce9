// --samples auto takes windows until amax settles.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "json/json.h"
#include "support/places.h"
#include "support/program/run_cli.h"
#include "support/says.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

using Strings = std::vector<std::string>;

test::CliResult calibrate(const test::TempDir& folder, const Strings& data, const Strings& more) {
  Strings arguments = {"calibrate", (test::source_dir() / "datasets/demo").string(),
                       "--seq-len", "64",
                       "--threads", "1",
                       "--force",   "--data"};
  arguments.insert(arguments.end(), data.begin(), data.end());
  arguments.insert(arguments.end(), more.begin(), more.end());
  return test::run_cli(arguments, folder.path());
}

const std::string kText = (test::source_dir() / "datasets/calibration.txt").string();

using test::says;

TEST_CASE("cli auto: the file is that of a run over as many windows, and it says how many") {
  const test::TempDir folder;
  folder.write("more.txt", "What was not needed is not in the file.\n");
  for (const Strings& policy : {Strings{"--policy", "amax"}, Strings{"--policy", "head*2"}}) {
    const auto with = [&](Strings more) {
      more.insert(more.end(), policy.begin(), policy.end());
      return more;
    };
    const test::CliResult result =
        calibrate(folder, {kText, "more.txt"}, with({"--samples", "auto", "-o", "auto.json"}));
    REQUIRE(result.exit_code == 0);
    const Json scales = Json::parse(test::read_file(folder / "auto.json"), "auto.json");
    const int64_t windows = scales.at("fp8kv").at("counted").at("windows").as_int();
    CHECK(windows >= 32);
    CHECK(windows < 512);
    CHECK(says(result.err, cat("took ", windows, " windows: amax has settled\n")));
    CHECK(says(result.err, cat(" tokens: amax grew by ")));
    const test::CliResult again =
        calibrate(folder, {kText, "more.txt"}, with({"--samples", cat(windows), "-o", "n.json"}));
    REQUIRE(again.exit_code == 0);
    CHECK(test::read_file(folder / "n.json") == test::read_file(folder / "auto.json"));
  }
}

TEST_CASE("cli auto: text that ends before amax settles is said, and is enough for scales") {
  const test::TempDir folder;
  folder.write("short.txt", "A cow eats grass. A goat eats paper, and so does the hen.\n");
  const test::CliResult result =
      calibrate(folder, {"short.txt"}, {"--samples", "auto", "-o", "s.json"});
  CHECK(result.exit_code == 0);
  CHECK(says(result.err,
             "warning: amax has not settled in 1 window, which is all of the text; add data\n"));
}

TEST_CASE("cli auto: shards and shuffled windows are refused") {
  const test::TempDir folder;
  for (const Strings& other : {Strings{"--shard", "0/2"}, Strings{"--shuffle", "7"}}) {
    Strings more = {"--samples", "auto"};
    more.insert(more.end(), other.begin(), other.end());
    const test::CliResult result = calibrate(folder, {kText}, more);
    CHECK(result.exit_code == 2);
    CHECK(result.err == cat("fp8kv: calibrate: --samples auto and ", other[0],
                            " cannot be given together\n"
                            "help: pass a number of windows, such as --samples 512\n"));
  }
}

}  // namespace
}  // namespace fp8kv
