// Cache formats and layers left in 16 bit, from the command line.
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "json/json.h"
#include "support/models/tiny_checkpoint.h"
#include "support/places.h"
#include "support/run_cli.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

using Arguments = std::vector<std::string>;

const std::string kDemo = (test::source_dir() / "datasets/demo").string();
const std::string kText = (test::source_dir() / "datasets/calibration.txt").string();

test::CliResult run(const test::TempDir& folder, Arguments first, const Arguments& more) {
  first.insert(first.end(), more.begin(), more.end());
  return test::run_cli(first, folder.path());
}

test::CliResult on_text(const test::TempDir& folder, const std::string& command,
                        const Arguments& more) {
  return run(folder,
             {command, kDemo, "--data", kText, "--samples", "4", "--seq-len", "64", "-q",
              "--threads", "1"},
             more);
}

// The KLD of every candidate, by name.
std::vector<std::pair<std::string, double>> klds(const test::CliResult& result) {
  REQUIRE(result.exit_code == 0);
  const Json report = Json::parse(result.out, "eval");
  std::vector<std::pair<std::string, double>> found;
  const Json candidates = report.at("candidates");
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Json each = candidates[i];
    found.emplace_back(each.at("name").as_string(), each.at("total").at("kld").as_double());
  }
  return found;
}

}  // namespace

TEST_CASE("cli formats: NVFP4 scales are amax / 2688, and serve an NVFP4 cache alone") {
  const test::TempDir folder;
  REQUIRE(
      on_text(folder, "calibrate", {"--out", "s.json", "--kv-cache-dtype", "nvfp4"}).exit_code ==
      0);
  const Json file = Json::read(folder / "s.json");
  CHECK(file.at("kv_cache").at("dtype").as_string() == "nvfp4");
  const Json extension = file.at("fp8kv");
  CHECK(extension.at("format").as_string() == "nvfp4");
  const auto amax = static_cast<float>(extension.at("amax").at("k")[2][0].as_double());
  const auto other = static_cast<float>(extension.at("amax").at("k")[2][1].as_double());
  CHECK(static_cast<float>(extension.at("k_scale")[2][0].as_double()) ==
        std::max(amax, other) / 2688.0f);
  const Arguments generate = {"run", kDemo, "Once",     "--max-tokens",
                              "8",   "-q",  "--scales", "s.json"};
  CHECK(run(folder, generate, {"--kv-cache-dtype", "nvfp4"}).exit_code == 0);
  CHECK(run(folder, generate, {"--kv-cache-dtype", "nvfp4_4over6"}).exit_code == 0);
  const test::CliResult refused = run(folder, generate, {"--kv-cache-dtype", "fp8"});
  CHECK(refused.exit_code == 3);
  CHECK(refused.err ==
        "fp8kv: run: 's.json': scales made for nvfp4 cannot serve float8_e4m3fn\n"
        "help: calibrate for it: 'fp8kv calibrate --kv-cache-dtype fp8_e4m3'\n");
}

TEST_CASE(
    "cli formats: FP8 scales are refused by an NVFP4 cache, and any by one that makes its own") {
  const test::TempDir folder;
  REQUIRE(on_text(folder, "calibrate", {"--out", "s.json"}).exit_code == 0);
  const Arguments generate = {"run", kDemo, "Once",     "--max-tokens",
                              "8",   "-q",  "--scales", "s.json"};
  CHECK(run(folder, generate, {"--kv-cache-dtype", "nvfp4"}).err ==
        "fp8kv: run: 's.json': scales made for float8_e4m3fn cannot serve nvfp4\n"
        "help: calibrate for it: 'fp8kv calibrate --kv-cache-dtype nvfp4'\n");
  CHECK(run(folder, generate, {"--kv-cache-dtype", "int8_per_token_head"}).err ==
        "fp8kv: run: scales are for an FP8 cache that makes none itself, not for --kv-cache-dtype "
        "int8_per_token_head\n"
        "help: leave out --scales and --unit-scales, or choose fp8\n");
  CHECK(
      on_text(folder, "calibrate",
              {"--out", "n.json", "--kv-cache-dtype", "nvfp4", "--policy", "head"})
          .err ==
      "fp8kv: calibrate: policy 'head': makes no scales for nvfp4, which has one for K and one for "
      "V of a layer\n"
      "help: use 'amax', 'amax*F' or a percentile\n");
}

TEST_CASE("cli formats: a file of NVFP4 scales is compared, merged and verified as what it is") {
  const test::TempDir folder;
  REQUIRE(
      on_text(folder, "calibrate", {"--out", "n.json", "--kv-cache-dtype", "nvfp4"}).exit_code ==
      0);
  REQUIRE(on_text(folder, "calibrate", {"--out", "s.json"}).exit_code == 0);
  CHECK(test::run_cli({"diff", "n.json", "n.json"}, folder.path()).exit_code == 0);
  CHECK(test::run_cli({"diff", "n.json", "s.json"}, folder.path()).err ==
        "fp8kv: diff: A is for nvfp4 and B for float8_e4m3fn: their scales cannot be compared\n"
        "help: compare scales for one format\n");
  CHECK(test::run_cli({"merge", "n.json", "s.json", "-o", "m.json"}, folder.path()).err ==
        "fp8kv: merge: 's.json': the format is float8_e4m3fn, but 'n.json' has nvfp4\n"
        "help: only calibrations of one model, made in the same way, can be merged\n");
  const test::CliResult verified = test::run_cli({"verify", "n.json"}, folder.path());
  CHECK(verified.exit_code == 3);
  CHECK(verified.err.find("'n.json': is a scale file for nvfp4, which no runtime reads") !=
        std::string::npos);
  CHECK(test::run_cli({"inject", kDemo, "-s", "n.json", "-o", "out"}, folder.path()).err ==
        "fp8kv: inject: 'n.json': is for nvfp4, expected scales for an FP8 cache\n"
        "help: calibrate with --kv-cache-dtype fp8, or check these with --for json\n");
  CHECK(run(folder, {"eval", kDemo, "--data", kText, "-s", "n.json"}, {"--kv-cache-dtype", "fp8"})
            .err.find("'n.json': scales made for nvfp4 cannot serve float8_e4m3fn") !=
        std::string::npos);
  CHECK(test::run_cli({"extract", "n.json", "-o", "again.json", "-q"}, folder.path()).exit_code ==
        0);
  CHECK(test::read_file(folder / "again.json") == test::read_file(folder / "n.json"));
}

TEST_CASE("cli formats: eval says which policies make no NVFP4 scales") {
  const test::TempDir folder;
  const test::CliResult result = run(
      folder,
      {"eval", kDemo, "--data", kText, "--samples", "2", "--seq-len", "32", "--greedy-tokens", "0"},
      {"--kv-cache-dtype", "nvfp4", "--policy", "amax,mse"});
  CHECK(result.exit_code == 0);
  CHECK(
      result.err.find("policy mse makes no scales for nvfp4, which has one for K and one for V of "
                      "a layer\n") != std::string::npos);
}

TEST_CASE("cli formats: heads that a format cannot hold are named") {
  const test::TempDir folder;
  test::write_tiny_checkpoint(folder / "model", test::tiny_config(), {});
  CHECK(
      test::run_cli({"plan", "model", "--kv-cache-dtype", "nvfp4"}, folder.path()).err ==
      "fp8kv: plan: --kv-cache-dtype nvfp4: heads of layer 0 have 8 elements, expected a multiple "
      "of 16\n"
      "help: use fp8_e4m3\n");
}

TEST_CASE("cli formats: every format is measured, and the wider ones lose less") {
  const test::TempDir folder;
  const auto found = klds(on_text(
      folder, "eval",
      {"--json", "--greedy-tokens", "0", "--kv-cache-dtype",
       "float16,fp8,int8_per_token_head,fp8_per_token_head,turboquant_k8v4,nvfp4,nvfp4_4over6,"
       "int4_per_token_head"}));
  REQUIRE(found.size() == 8);
  const auto kld = [&](const std::string& name) {
    const auto at = std::find_if(found.begin(), found.end(),
                                 [&](const auto& each) { return each.first == name; });
    REQUIRE(at != found.end());
    return at->second;
  };
  CHECK(kld("float16") == 0);
  CHECK(kld("fp8_e4m3 amax") > 0);
  CHECK(kld("nvfp4 amax") > 4 * kld("fp8_e4m3 amax"));
  CHECK(kld("nvfp4 amax") > 4 * kld("int8_per_token_head"));
  CHECK(kld("int4_per_token_head") > 4 * kld("fp8_per_token_head"));
  CHECK(kld("turboquant_k8v4") > 0);
  CHECK(kld("nvfp4_4over6 amax") > 0);
}

TEST_CASE("cli formats: a skipped layer is left in 16 bit by eval, run and plan") {
  const test::TempDir folder;
  const Arguments eval = {"--json", "--greedy-tokens", "0", "--kv-cache-dtype", "nvfp4"};
  const auto with = [&](const std::string& layers) {
    Arguments arguments = eval;
    arguments.insert(arguments.end(), {"--kv-cache-dtype-skip-layers", layers});
    return klds(on_text(folder, "eval", arguments)).at(0);
  };
  const double all = klds(on_text(folder, "eval", eval)).at(0).second;
  CHECK(with("0,1,2,3,4,5").second == 0);
  const auto some = with("5,0,1,2");
  CHECK(some.first == "nvfp4 amax, 16-bit layers 0-2 and 5");
  CHECK(some.second > 0);
  CHECK(some.second < all);
  // 4 layers of 2 heads of 32 take 144 bytes each, 2 take 256.
  const Json plan = Json::parse(test::run_cli({"plan", kDemo, "--json", "--kv-cache-dtype", "nvfp4",
                                               "--kv-cache-dtype-skip-layers", "0,5"},
                                              folder.path())
                                    .out,
                                "plan");
  CHECK(plan.at("plans")[0].at("bytes_per_token").as_double() == 4 * 72 + 2 * 256);
}

TEST_CASE("cli formats: calibrate records skipped layers, and run leaves them in 16 bit") {
  const test::TempDir folder;
  REQUIRE(on_text(folder, "calibrate", {"--out", "s.json", "--kv-cache-dtype-skip-layers", "4,0"})
              .exit_code == 0);
  const Json skipped = Json::read(folder / "s.json").at("fp8kv").at("skip_layers");
  REQUIRE(skipped.size() == 2);
  CHECK(skipped[0].as_double() == 0);
  CHECK(skipped[1].as_double() == 4);
  const test::CliResult result = test::run_cli(
      {"run", kDemo, "Once", "--max-tokens", "4", "--scales", "s.json", "--kv-cache-dtype", "fp8"},
      folder.path());
  CHECK(result.err.find("cache in fp8_e4m3 with the scales of 's.json', but layers 0 and 4 in "
                        "float16") != std::string::npos);
  const test::CliResult injected =
      test::run_cli({"inject", kDemo, "--scales", "s.json", "-o", "out"}, folder.path());
  CHECK(injected.exit_code == 0);
  CHECK((injected.out + injected.err).find("--kv-cache-dtype-skip-layers 0 4") !=
        std::string::npos);
}

TEST_CASE("cli formats: skipped layers that do not exist are named") {
  const test::TempDir folder;
  const auto refusal = [&](const std::string& layers) {
    const test::CliResult result =
        test::run_cli({"plan", kDemo, "--kv-cache-dtype-skip-layers", layers}, folder.path());
    CHECK(result.exit_code == 2);
    return result.err;
  };
  const std::string help = "help: name layers as in 0,5,sliding_window\n";
  CHECK(refusal("6") ==
        "fp8kv: plan: --kv-cache-dtype-skip-layers: names layer 6, expected a layer of the model, "
        "which has 0 to 5\n" +
            help);
  CHECK(refusal("sliding_window") ==
        "fp8kv: plan: --kv-cache-dtype-skip-layers: no layer of the model has a sliding window, "
        "expected numbers of layers\n" +
            help);
  CHECK(refusal("0,first") ==
        "fp8kv: plan: --kv-cache-dtype-skip-layers: is 'first', expected numbers of layers or "
        "'sliding_window'\n" +
            help);
}

}  // namespace fp8kv
