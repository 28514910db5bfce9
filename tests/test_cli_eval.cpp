#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/json.h"
#include "support/run_cli.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

const std::string kDemo = (test::source_dir() / "datasets/demo").string();
const std::string kText = (test::source_dir() / "datasets/calibration.txt").string();

// `fp8kv eval` on six windows of the demo's text.
test::CliResult eval(const test::TempDir& folder, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"eval", kDemo,       "--data", kText, "--samples",
                                        "6",    "--seq-len", "256",    "-q"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return test::run_cli(arguments, folder.path());
}

// Line `number` of a text, from 0.
std::string line(const std::string& text, size_t number) {
  size_t at = 0;
  for (; number > 0; --number) at = text.find('\n', at) + 1;
  return text.substr(at, text.find('\n', at) - at);
}

TEST_CASE("cli eval: calibrated FP8 passes the gate that unit and shared scales fail") {
  const test::TempDir folder;
  const test::CliResult result =
      eval(folder, {"--policy", "amax,unit,shared", "--fail-if", "ppl_delta > 0.5%", "--fail-if",
                    "saturated > 0", "--greedy-tokens", "0", "--junit", "gates.xml"});
  CHECK(result.exit_code == 1);
  CHECK(result.err.starts_with("fp8kv: eval: 3 of 6 checks failed; fp8_e4m3 unit: ppl_delta is "));
  CHECK(result.err.find("(ppl_delta > 0.5%); fp8_e4m3 unit: saturated is ") != std::string::npos);
  CHECK(result.err.find(" in layer 0 K (saturated > 0); fp8_e4m3 shared: ppl_delta is ") !=
        std::string::npos);
  CHECK(result.err.find("fp8_e4m3 amax") == std::string::npos);
  CHECK(line(result.out, 0).starts_with("cache "));
  CHECK(line(result.out, 1).starts_with("float16 (baseline)"));
  // The layers whose ranges were moved, and no others.
  CHECK(
      result.out.find("verdict   layers 0 and 1 need their scales; 1.0 is safe in the other 4\n") !=
      std::string::npos);
  const std::string junit = test::read_file(folder / "gates.xml");
  CHECK(junit.find("<testsuites tests=\"6\" failures=\"3\">") != std::string::npos);
}

TEST_CASE("cli eval: JSON has what the gates decide by") {
  const test::TempDir folder;
  const test::CliResult result =
      eval(folder, {"--policy", "amax,shared", "--kv-cache-dtype", "fp8_e4m3,fp8_e5m2,float16",
                    "--json", "--fail-if", "kld > 100"});
  CHECK(result.exit_code == 0);
  CHECK(result.err == "");
  const Json json = Json::parse(result.out, "stdout");
  CHECK(json.at("schema").as_string() == "fp8kv.eval/1");
  CHECK(json.at("windows").as_int() == 6);
  CHECK(json.at("tokens").as_int() == 6 * 256);
  CHECK(json.at("calibration").at("same_data").as_bool());
  REQUIRE(json.at("candidates").size() == 4);
  const Json amax = json.at("candidates")[0], shared = json.at("candidates")[1];
  const Json e5m2 = json.at("candidates")[2], half = json.at("candidates")[3];
  CHECK(amax.at("name").as_string() == "fp8_e4m3 amax");
  CHECK(e5m2.at("name").as_string() == "fp8_e5m2");
  CHECK(amax.at("bytes_per_token").as_int() * 2 == half.at("bytes_per_token").as_int());
  CHECK(amax.at("total").at("tokens").as_int() == 6 * 255);
  CHECK(std::abs(amax.at("total").at("ppl_delta").as_double()) < 0.005);
  CHECK(shared.at("total").at("ppl_delta").as_double() > 0.1);
  CHECK(half.at("total").at("kld").as_double() == 0);
  CHECK(amax.at("greedy").size() == 6);
  // One scale for K and V of layer 1 flushes its V to zero, all but a few of the largest.
  const Json v = shared.at("layers")[1].at("v");
  CHECK(v.at("zero").as_double() > 0.99 * v.at("values").as_double());
  CHECK(amax.has("certificate"));
  CHECK(!half.has("certificate"));
  CHECK(json.at("gates")[0].at("failed").as_bool() == false);
}

TEST_CASE("cli eval: scales of a file, of other text and of the model itself") {
  const test::TempDir folder;
  folder.write("a.txt", "London is the capital of England. It was a foggy Friday.");
  const test::CliResult other =
      eval(folder, {"--calibrate-on", "a.txt", "--greedy-tokens", "0", "--policy", "amax*2"});
  CHECK(other.exit_code == 3);  // one window, where --samples asks for six
  CHECK(other.err.find("'a.txt': ") == std::string::npos);
  std::vector<std::string> calibrate = {"calibrate", kDemo, "--data", kText,    "--samples", "4",
                                        "--seq-len", "256", "-o",     "s.json", "-q"};
  REQUIRE(test::run_cli(calibrate, folder.path()).exit_code == 0);
  const test::CliResult file =
      eval(folder, {"--scales", "s.json", "--greedy-tokens", "0", "--json"});
  const Json json = Json::parse(file.out, "stdout");
  CHECK(json.at("candidates")[0].at("name").as_string() == "fp8_e4m3 s.json");
  CHECK(!json.has("calibration"));
}

TEST_CASE("cli eval: held-out text is set beside what calibration found, part by part") {
  const test::TempDir folder;
  std::string text(test::read_file(kText));
  folder.write("a.txt", text.substr(0, 60000));
  folder.write("b.txt", text.substr(60000, 20000));
  const test::CliResult result =
      test::run_cli({"eval", kDemo, "--data", "b.txt", "--calibrate-on", "a.txt", "--samples", "8",
                     "--seq-len", "128", "--greedy-tokens", "0", "-q"},
                    folder.path());
  CHECK(result.exit_code == 0);
  const size_t at = result.out.find("\nLargest magnitude after so many tokens");
  REQUIRE(at != std::string::npos);
  CHECK(line(result.out.substr(at), 2) ==
        "layer          128        256        512      1,024  evaluated  ratio");
}

TEST_CASE("cli eval: contradictions are refused before any work") {
  const test::TempDir folder;
  const auto refusal = [&](const std::vector<std::string>& more) {
    const test::CliResult result = eval(folder, more);
    CHECK(result.exit_code == 2);
    CHECK(result.out == "");
    return result.err;
  };
  CHECK(refusal({"--policy", "amax,amax"}) ==
        "fp8kv: eval: the candidate 'fp8_e4m3 amax' is asked for twice\n"
        "help: name every dtype and every policy once\n");
  CHECK(refusal({"--policy", "amax", "--kv-cache-dtype", "fp8_e5m2"}) ==
        "fp8kv: eval: scales are for E4M3 caches, and --kv-cache-dtype names none\n"
        "help: add fp8_e4m3, or leave out --scales, --policy and --calibrate-on\n");
  CHECK(refusal({"--baseline", "fp8"}) ==
        "fp8kv: eval: --baseline fp8: is FP8, expected float32, float16 or bfloat16\n"
        "help: name FP8 caches with --kv-cache-dtype\n");
  CHECK(refusal({"--unit-scales", "--calibrate-on", "x.txt"}) ==
        "fp8kv: eval: --calibrate-on is text for the scales of --policy, and there are scales "
        "already\nhelp: leave out --scales and --unit-scales\n");
  CHECK(refusal({"--fail-if", "kld"}) ==
        "fp8kv: eval: --fail-if: 'kld': has none of <, <=, > and >=\n"
        "help: write METRIC OP NUMBER[%], as in \"ppl_delta > 0.5%\"\n");
}

}  // namespace
}  // namespace fp8kv
