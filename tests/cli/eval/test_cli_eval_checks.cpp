// The checks of eval, and the JSON and JUnit files that tell what failed.
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include "json/json.h"
#include "support/program/eval_demo.h"
#include "support/program/run_cli.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

using test::eval;
using test::eval_little;
using test::eval_windows;
using test::kDemo;
using test::kTokens;
using test::kWindows;
using test::line;

TEST_CASE("cli eval: calibrated FP8 passes the gate that unit and shared scales fail") {
  const test::TempDir folder;
  const test::CliResult result =
      eval(folder, {"--policy", "amax,unit,shared", "--fail-if", "ppl_delta > 0.5%", "--fail-if",
                    "saturated > 0", "--greedy-tokens", "0", "--junit", "gates.xml", "--table"});
  CHECK(result.exit_code == 1);
  CHECK(result.err.starts_with("fp8kv: eval: 3 of 6 checks failed; fp8_e4m3 unit: ppl_delta is "));
  CHECK(result.err.find("(ppl_delta > 0.5%); fp8_e4m3 unit: saturated is ") != std::string::npos);
  CHECK(result.err.find(" in layer 0 K (saturated > 0); fp8_e4m3 shared: ppl_delta is ") !=
        std::string::npos);
  CHECK(result.err.find("fp8_e4m3 amax") == std::string::npos);
  CHECK(line(result.out, 0).starts_with("cache "));
  CHECK(line(result.out, 1).starts_with("float16 (baseline)"));
  // Only the layers whose ranges were moved need scales.
  CHECK(
      result.out.find("verdict   layers 0 and 1 need their scales; 1.0 is safe in the other 4\n") !=
      std::string::npos);
  CHECK(result.out.ends_with(
      "fp8_e4m3 unit: its scales lose values that were seen in layers 0 and 1\n"
      "fp8_e4m3 shared: its scales lose values that were seen in layer 1\n"));
  const std::string junit = test::read_file(folder / "gates.xml");
  CHECK(junit.find("<testsuites tests=\"6\" failures=\"3\">") != std::string::npos);
}

TEST_CASE(
    "cli eval: the default checks pass calibrated scales and fail scales of 1, on little text") {
  const test::TempDir folder;
  const auto check = [&](const char* policy) {
    return eval_windows(
        folder, 2, 64,
        {"--policy", policy, "--fail-if", "default", "--greedy-tokens", "0", "--json"});
  };
  const test::CliResult good = check("amax,mse,head");
  CHECK(good.exit_code == 0);
  CHECK(good.err == "");
  const test::CliResult bad = check("unit");
  CHECK(bad.exit_code == 1);
  CHECK(bad.err.find("kld is ") != std::string::npos);
  CHECK(bad.err.find("top1 is ") != std::string::npos);
  const Json json = Json::parse(bad.out, "stdout");
  CHECK(json.at("candidates")[0].at("verdict").as_string() == "broken");
  CHECK(json.at("gates").size() == 5);
}

TEST_CASE("cli eval: JSON has what the gates decide by") {
  const test::TempDir folder;
  const test::CliResult result =
      eval(folder, {"--policy", "amax,shared", "--kv-cache-dtype", "fp8_e4m3,fp8_e5m2,float16",
                    "--greedy-tokens", "8", "--json", "--fail-if", "kld > 100"});
  CHECK(result.exit_code == 0);
  CHECK(result.err == "");
  const Json json = Json::parse(result.out, "stdout");
  CHECK(json.at("schema").as_string() == "fp8kv.eval/1");
  CHECK(json.at("windows").as_int() == kWindows);
  CHECK(json.at("tokens").as_int() == kWindows * kTokens);
  CHECK(json.at("calibration").at("same_data").as_bool());
  REQUIRE(json.at("candidates").size() == 4);
  const Json amax = json.at("candidates")[0], shared = json.at("candidates")[1];
  const Json e5m2 = json.at("candidates")[2], half = json.at("candidates")[3];
  CHECK(amax.at("name").as_string() == "fp8_e4m3 amax");
  CHECK(e5m2.at("name").as_string() == "fp8_e5m2");
  CHECK(amax.at("bytes_per_token").as_int() * 2 == half.at("bytes_per_token").as_int());
  CHECK(amax.at("total").at("tokens").as_int() == kWindows * (kTokens - 1));
  CHECK(std::abs(amax.at("total").at("ppl_delta").as_double()) < 0.005);
  CHECK(shared.at("total").at("ppl_delta").as_double() > 0.1);
  CHECK(half.at("total").at("kld").as_double() == 0);
  CHECK(amax.at("greedy").size() == kWindows);
  // One scale for K and V of layer 1 flushes all but a few of the largest V to zero.
  const Json v = shared.at("layers")[1].at("v");
  CHECK(v.at("zero").as_double() > 0.99 * v.at("values").as_double());
  CHECK(amax.has("certificate"));
  CHECK(!half.has("certificate"));
  CHECK(json.at("gates")[0].at("failed").as_bool() == false);
}

TEST_CASE("cli eval: JUnit names what failed and by how much") {
  const test::TempDir folder;
  const test::CliResult result =
      eval(folder, {"--policy", "amax,unit", "--fail-if", "ppl_delta>0.5%", "--fail-if",
                    "top1 < 50%", "--greedy-tokens", "0", "--junit", "gates.xml"});
  CHECK(result.exit_code == 1);
  const std::string junit = test::read_file(folder / "gates.xml");
  const size_t number = junit.find("ppl_delta is ") + 13;
  const std::string value = junit.substr(number, junit.find('"', number) - number);
  CHECK(std::stod(value) > 0.5);
  const std::string head = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  CHECK(junit == head + "<testsuites tests=\"4\" failures=\"1\">\n  <testsuite name=\"fp8kv eval " +
                     kDemo + "\" tests=\"4\" failures=\"1\">\n" +
                     R"(    <testcase classname="fp8_e4m3 amax" name="ppl_delta&gt;0.5%"/>
    <testcase classname="fp8_e4m3 amax" name="top1 &lt; 50%"/>
    <testcase classname="fp8_e4m3 unit" name="ppl_delta&gt;0.5%">
      <failure message="ppl_delta is )" +
                     value + R"("/>
    </testcase>
    <testcase classname="fp8_e4m3 unit" name="top1 &lt; 50%"/>
  </testsuite>
</testsuites>
)");
  CHECK(result.err == "fp8kv: eval: 1 of 4 checks failed; fp8_e4m3 unit: ppl_delta is " + value +
                          " (ppl_delta>0.5%)\n");
}

TEST_CASE(
    "cli eval: a failed check still leaves all results, and --junit without checks is empty") {
  const test::TempDir folder;
  const test::CliResult failed = eval(folder, {"--unit-scales", "--json", "--fail-if", "kld > 0.1",
                                               "--greedy-tokens", "0", "--report", "r.html"});
  CHECK(failed.exit_code == 1);
  const Json gate = Json::parse(failed.out, "stdout").at("gates")[0];
  CHECK(gate.at("failed").as_bool());
  CHECK(gate.at("candidate").as_string() == "fp8_e4m3 unit");
  CHECK(std::filesystem::exists(folder / "r.html"));
  CHECK(eval_little(folder, {"--unit-scales", "--greedy-tokens", "0", "--junit", "none.xml"})
            .exit_code == 0);
  CHECK(test::read_file(folder / "none.xml").find("tests=\"0\" failures=\"0\"") !=
        std::string::npos);
}

}  // namespace
}  // namespace fp8kv
