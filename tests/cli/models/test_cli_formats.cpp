// Cache formats, and layers left in 16 bit, on the command line.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "json/json.h"
#include "support/models/tiny_checkpoint.h"
#include "support/places.h"
#include "support/program/run_cli.h"
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

// The KLD of each candidate with its name.
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
  const test::CliResult made =
      on_text(folder, "calibrate", {"--out", "s.json", "--kv-cache-dtype", "nvfp4"});
  REQUIRE(made.exit_code == 0);
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
  for (const auto& [dtype, why] : {std::pair{"int8_per_token_head", "makes its own scales"},
                                   {"turboquant_k8v4", "makes its own scales"},
                                   {"fp8_e5m2", "needs no scales"},
                                   {"bfloat16", "needs no scales"}}) {
    const test::CliResult refused =
        on_text(folder, "calibrate", {"--out", "none.json", "--kv-cache-dtype", dtype});
    CHECK(refused.exit_code == 2);
    CHECK(refused.err == cat("fp8kv: calibrate: --kv-cache-dtype: ", dtype, " ", why,
                             ", so there is nothing to calibrate; 'fp8kv eval' measures this "
                             "cache\nhelp: see 'fp8kv calibrate --help'\n"));
  }
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
  CHECK(run(folder, {"eval", kDemo, "--data", kText, "-s", "n.json"}, {"--kv-cache-dtype", "fp8"})
            .err.find("'n.json': scales made for nvfp4 cannot serve float8_e4m3fn") !=
        std::string::npos);
  CHECK(test::run_cli({"extract", "n.json", "-o", "again.json", "-q"}, folder.path()).exit_code ==
        0);
  CHECK(test::read_file(folder / "again.json") == test::read_file(folder / "n.json"));
}

TEST_CASE("cli formats: NVFP4 scales go into a folder, serve there, and come out again") {
  const test::TempDir folder;
  REQUIRE(
      on_text(folder, "calibrate", {"--out", "n.json", "--kv-cache-dtype", "nvfp4"}).exit_code ==
      0);
  const test::CliResult injected =
      test::run_cli({"inject", kDemo, "-s", "n.json", "-o", "out"}, folder.path());
  CHECK(injected.exit_code == 0);
  CHECK(injected.out.find("vllm serve out --kv-cache-dtype nvfp4\n") != std::string::npos);
  // vLLM rounds to the demo's F16, where amax / 2688 of its smallest V becomes zero.
  const test::CliResult rounded =
      test::run_cli({"verify", "out", "--runtime", "vllm@0.33"}, folder.path());
  CHECK(rounded.exit_code == 1);
  CHECK(rounded.out.find("rounded away in layer 1") != std::string::npos);
  CHECK(test::run_cli({"inject", kDemo, "-s", "n.json", "-o", "raised", "-q", "--scale-rounding",
                       "power-of-two"},
                      folder.path())
            .exit_code == 0);
  CHECK(test::run_cli({"verify", "raised", "--runtime", "vllm@0.33"}, folder.path()).exit_code ==
        0);
  const test::CliResult fp8 = test::run_cli(
      {"verify", "raised", "--runtime", "vllm@0.33", "--kv-cache-dtype", "fp8"}, folder.path());
  CHECK(fp8.exit_code == 1);
  CHECK(fp8.err.find("vllm serve raised --kv-cache-dtype nvfp4") != std::string::npos);
  const test::CliResult own = test::run_cli(
      {"verify", "out", "--runtime", "vllm@0.33", "--kv-cache-dtype", "int8_per_token_head"},
      folder.path());
  CHECK(own.exit_code == 1);
  CHECK(own.out.find("such a cache makes its own scales, and takes none of a model") !=
        std::string::npos);
  CHECK(test::run_cli({"diff", "out", "n.json"}, folder.path()).exit_code == 0);
  // The folder's own scales give the same text as the scale file.
  const Arguments generate = {"Once", "--max-tokens", "8", "-q"};
  Arguments of_folder = {"run", "out"}, of_file = {"run", kDemo, "-s", "n.json"};
  of_folder.insert(of_folder.end(), generate.begin(), generate.end());
  of_file.insert(of_file.end(), generate.begin(), generate.end());
  const test::CliResult text = test::run_cli(of_folder, folder.path());
  CHECK(text.exit_code == 0);
  CHECK(text.out == test::run_cli(of_file, folder.path()).out);
}

TEST_CASE("cli formats: plan knows formats that are not computed, and layers that vLLM leaves") {
  const test::TempDir folder;
  const test::CliResult planned = test::run_cli(
      {"plan", kDemo, "--kv-cache-dtype", "turboquant_4bit_nc,turboquant_k8v4", "--json"},
      folder.path());
  CHECK(planned.exit_code == 0);
  CHECK(planned.err ==
        "note: turboquant_4bit_nc: vLLM leaves layers 0, 1, 4 and 5 in 16 bit, and so does this "
        "plan\nnote: turboquant_k8v4: vLLM leaves layers 0, 1, 4 and 5 in 16 bit, and so does this "
        "plan\n");
  const Json plans = Json::parse(planned.out, "plan").at("plans");
  CHECK(plans[0].at("kv_cache_dtype").as_string() == "turboquant_4bit_nc");
  CHECK(test::run_cli({"plan", kDemo, "--kv-cache-dtype", "octave_k3v4"}, folder.path())
            .err.starts_with("fp8kv: plan: --kv-cache-dtype octave_k3v4: heads of layer 0 have "));
  CHECK(test::run_cli({"run", kDemo, "x", "--kv-cache-dtype", "octave_k3v4"}, folder.path())
            .exit_code == 2);
}

TEST_CASE("cli formats: scales of Q are written when they are asked for, and compared") {
  const test::TempDir folder;
  REQUIRE(on_text(folder, "calibrate", {"--out", "s.json"}).exit_code == 0);
  const auto inject = [&](const char* out, const Arguments& more) {
    return run(folder, {"inject", kDemo, "-s", "s.json", "-o", out, "-q"}, more);
  };
  CHECK(inject("q", {"--for", "vllm", "--q-scales"}).exit_code == 0);
  CHECK(inject("plain", {"--for", "vllm"}).exit_code == 0);
  const test::CliResult listed = test::run_cli({"extract", "--list", "q"}, folder.path());
  CHECK(listed.out.find("model.layers.0.self_attn.q_scale") != std::string::npos);
  const test::CliResult same = test::run_cli({"diff", "q", "s.json"}, folder.path());
  CHECK(same.exit_code == 0);
  CHECK(same.out.find("\nQ: no layer of 6 differs\n") != std::string::npos);
  CHECK(
      test::run_cli({"diff", "q", "plain"}, folder.path()).err.find("note: B has no scales of Q") !=
      std::string::npos);
  CHECK(inject("tgi", {"--for", "tgi", "--q-scales"}).err ==
        "fp8kv: inject: no scales of Q can be written for 'tgi'\n"
        "help: vLLM alone is known to take some, in its attention in FP8: --for vllm\n");
}

TEST_CASE("cli formats: eval adds the same cache as other kernels compute with it") {
  const test::TempDir folder;
  const test::CliResult result =
      run(folder,
          {"eval", kDemo, "--data", kText, "--samples", "4", "--seq-len", "64", "--greedy-tokens",
           "0", "--json", "-q", "--device", "cpu"},
          {"--attention", "fp8", "--fp8-rounding", "toward-zero", "--policy", "amax,unit"});
  const auto found = klds(result);
  REQUIRE(found.size() == 6);
  CHECK(found[0].first == "fp8_e4m3 amax");
  CHECK(found[1].first == "fp8_e4m3 amax, attention in FP8");
  CHECK(found[2].first == "fp8_e4m3 amax, rounded towards zero");
  CHECK(found[4].first == "fp8_e4m3 unit, attention in FP8");
  CHECK(found[1].second > found[0].second);
  // Twice the error of a value gives about four times the divergence.
  CHECK(found[2].second > 2 * found[0].second);
  const Json candidates = Json::parse(result.out, "eval").at("candidates");
  CHECK(candidates[1].at("attention").as_string() == "fp8");
  CHECK(candidates[2].at("fp8_rounding").as_string() == "toward-zero");
  CHECK_FALSE(candidates[0].has("attention"));
  CHECK(run(folder, {"eval", kDemo, "--data", kText},
            {"--attention", "fp8", "--kv-cache-dtype", "nvfp4", "--policy", "amax"})
            .err ==
        "fp8kv: eval: --attention fp8: is about fp8_e4m3 caches, and none is measured\n"
        "help: add fp8_e4m3 to --kv-cache-dtype\n");
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
  // Four layers of 2 heads of 32 take 144 bytes each, two layers take 256.
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
  const std::string served = "\n  vllm serve out --kv-cache-dtype fp8";
  const std::string skipping = served + " --kv-cache-dtype-skip-layers 0 4\n";
  CHECK(injected.out.find(skipping) != std::string::npos);
  // Versions before 0.19 cannot skip layers.
  const auto verified = [&](const char* runtime) {
    return test::run_cli({"verify", "out", "--runtime", runtime, "--json"}, folder.path());
  };
  const Json now = Json::parse(verified("vllm@0.33").out, "now").at("runtimes")[0];
  CHECK(now.at("serve").as_string() == skipping.substr(3, skipping.size() - 4));
  CHECK(now.at("layers")[4].at("fate").as_string() == "not needed");
  const Json before = Json::parse(verified("vllm@0.16").out, "before").at("runtimes")[0];
  CHECK(before.at("serve").as_string() == served.substr(3));
  CHECK(before.at("layers")[4].at("fate").as_string() != "not needed");
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
