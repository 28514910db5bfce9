// `fp8kv eval --task needle`: numbers hidden in a text, by length and depth.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "json/json.h"
#include "support/places.h"
#include "support/program/run_cli.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

const std::string kBook = (test::source_dir() / "datasets/calibration.txt").string();

// Caches of one dtype write one text on every processor.
test::CliResult ask_needles(std::vector<std::string> more) {
  const test::TempDir folder;
  std::vector<std::string> arguments = {"eval",
                                        (test::source_dir() / "datasets/demo").string(),
                                        "--unit-scales",
                                        "-q",
                                        "--baseline",
                                        "float32",
                                        "--kv-cache-dtype",
                                        "float32",
                                        "--task",
                                        "needle=" + kBook};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return test::run_cli(arguments, folder.path());
}

}  // namespace

TEST_CASE("cli eval needles: a table for each cache and kind, depth by length") {
  const test::CliResult result =
      ask_needles({"--needle-lengths", "192,256", "--needle-depths", "2", "--needle-kinds",
                   "single,keys", "--needle-samples", "2"});
  CHECK(result.err == "");
  CHECK(result.exit_code == 0);
  const std::string grid =
      "depth  192 tokens  256 tokens\n"
      "0%         0 of 2      0 of 2\n"
      "100%       0 of 2      0 of 2\n";
  const size_t grids = result.out.find("\n\n");
  REQUIRE(grids != std::string::npos);
  CHECK(
      result.out.find("needle " + kBook + " (needle), 0-shot, 16 of 16 items; compared by found") !=
      std::string::npos);
  CHECK(result.out.substr(grids + 1) == "\nfloat32, single\n" + grid + "\nfloat32, keys\n" + grid +
                                            "\nfloat32, single\n" + grid + "\nfloat32, keys\n" +
                                            grid);
}

TEST_CASE("cli eval needles: JSON has the place of every item, and --items ends the list") {
  const test::CliResult result =
      ask_needles({"--needle-lengths", "192", "--needle-depths", "3", "--items", "2", "--json"});
  REQUIRE_MESSAGE(result.exit_code == 0, result.err);
  const Json task = Json::parse(result.out, "out").at("tasks")[0];
  REQUIRE(task.at("items").size() == 2);
  CHECK(task.at("items")[1].at("depth").as_double() == 0.5);
  CHECK(task.at("items")[1].at("length").as_int() == 192);
  CHECK(task.at("items")[1].at("kind").as_string() == "single");
  CHECK(task.at("items")[1].at("answer").as_string().size() == 6);
}

TEST_CASE("cli eval needles: what cannot be asked is refused") {
  const auto refused = [](const std::vector<std::string>& flags, int exit_code,
                          const std::string& said) {
    CAPTURE(said);
    const test::CliResult result = ask_needles(flags);
    CHECK(result.exit_code == exit_code);
    CHECK_MESSAGE(result.err.find(said) != std::string::npos, result.err);
  };
  refused({"--needle-lengths", "1024"}, 2,
          "--needle-lengths: has 1024, the model's context is 512 (max_position_embeddings)");
  refused({"--needle-kinds", "many"}, 2,
          "--needle-kinds: is 'many', expected single, keys or values");
  refused({"--few-shot", "1"}, 2, "--few-shot: needle has no examples");
}

}  // namespace fp8kv
