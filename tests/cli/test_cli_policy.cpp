// The policies that make scales, in every command with --policy.
#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "json/json.h"
#include "policy/policies.h"
#include "support/models/tiny_checkpoint.h"
#include "support/program/run_cli.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

using Arguments = std::vector<std::string>;

const std::string kDemo = (test::source_dir() / "datasets/demo").string();
const std::string kText = (test::source_dir() / "datasets/calibration.txt").string();

test::CliResult run(const test::TempDir& folder, const std::string& command,
                    const Arguments& more) {
  Arguments arguments = {command,     kDemo, "--data", kText,       "--samples", "8",
                         "--seq-len", "64",  "-q",     "--threads", "1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return test::run_cli(arguments, folder.path());
}

void calibrate(const test::TempDir& folder, const std::string& out, const Arguments& more) {
  Arguments arguments = {"--out", out};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const test::CliResult result = run(folder, "calibrate", arguments);
  CHECK(result.exit_code == 0);
  CHECK(result.err == "");
}

std::string text_of(const test::TempDir& folder, const std::string& file) {
  return test::read_file(folder / file);
}

// One policy of each kind.
const Arguments kPolicies = {"amax",   "amax*1.5",      "head*2", "shared", "loss",
                             "loss*4", "head-loss*1.2", "mse",    "p99.9",  "unit"};

std::string listed(const Arguments& policies) {
  std::string all;
  for (const std::string& policy : policies) all += (all.empty() ? "" : ",") + policy;
  return all;
}

// Reads numbers back bit for bit.
std::vector<float> floats(const Json& row) {
  std::vector<float> values;
  for (size_t i = 0; i < row.size(); ++i) values.push_back(static_cast<float>(row[i].as_double()));
  return values;
}

using Scales = std::vector<std::vector<float>>;  // K of layer 0, V of layer 0, K of layer 1, ...

Scales scales_in_file(const std::filesystem::path& path) {
  const Json file = Json::read(path).at("fp8kv");
  Scales scales;
  for (size_t layer = 0; layer < file.at("k_scale").size(); ++layer) {
    scales.push_back(floats(file.at("k_scale")[layer]));
    scales.push_back(floats(file.at("v_scale")[layer]));
  }
  return scales;
}

Scales scales_of(const Json& candidate) {
  const Json layers = candidate.at("layers");
  Scales scales;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    for (const char* tensor : {"k_scale", "v_scale"}) {
      const auto found = layers[layer].find(tensor);
      scales.push_back(found ? floats(*found) : std::vector<float>{1});  // unit
    }
  }
  return scales;
}

TEST_CASE("cli policy: calibrate writes the scales that eval measures, bit for bit") {
  const test::TempDir folder;
  const test::CliResult measured =
      run(folder, "eval", {"--policy", listed(kPolicies), "--json", "--greedy-tokens", "0"});
  REQUIRE(measured.exit_code == 0);
  const Json candidates = Json::parse(measured.out, "stdout").at("candidates");
  REQUIRE(candidates.size() == kPolicies.size());
  std::set<Scales> all;
  for (size_t i = 0; i < kPolicies.size(); ++i) {
    CAPTURE(kPolicies[i]);
    calibrate(folder, "s.json", {"--policy", kPolicies[i], "--force"});
    const Scales written = scales_in_file(folder / "s.json");
    CHECK(written.size() == 2 * 6);
    CHECK(written == scales_of(candidates[i]));
    all.insert(written);
  }
  // The list covers every kind of policy, and no two policies give the same scales.
  CHECK(all.size() == kPolicies.size());
  for (const PolicyKind& kind : policy_kinds()) {
    CHECK(std::any_of(kPolicies.begin(), kPolicies.end(), [&](const std::string& policy) {
      return parse_policy(policy).kind == &kind;
    }));
  }
}

TEST_CASE("cli policy: eval calibrates on windows of one token too, as calibrate does") {
  const test::TempDir folder;
  const std::string longer = "{\"input_ids\": [40, 41, 42]}\n";
  folder.write("longer.jsonl", longer);
  const auto written = [&](const std::string& data) {
    REQUIRE(test::run_cli({"calibrate", kDemo, "--data", data, "-o", "s.json", "-q", "--force"},
                          folder.path())
                .exit_code == 0);
    return scales_in_file(folder / "s.json");
  };
  // Searches a token that raises a maximum, to show whether it was counted.
  int far = 43;
  do {
    folder.write("all.jsonl", cat("{\"input_ids\": [", far++, "]}\n", longer));
  } while (far < 60 && written("all.jsonl") == written("longer.jsonl"));
  const Scales expected = written("all.jsonl");
  REQUIRE(expected != written("longer.jsonl"));
  const std::vector<Arguments> ways = {{"--data", "all.jsonl"},
                                       {"--data", "longer.jsonl", "--calibrate-on", "all.jsonl"}};
  for (Arguments arguments : ways) {
    arguments.insert(arguments.begin(), {"eval", kDemo, "--policy", "amax", "--json", "-q"});
    const Json json = Json::parse(test::run_cli(arguments, folder.path()).out, "stdout");
    CHECK(scales_of(json.at("candidates")[0]) == expected);
    CHECK(json.at("calibration").at("windows").as_int() == 2);
  }
}

TEST_CASE("cli policy: --granularity and --headroom are spellings of policies") {
  const test::TempDir folder;
  calibrate(folder, "plain.json", {});
  calibrate(folder, "amax.json", {"--policy", "amax", "--granularity", "tensor"});
  calibrate(folder, "old.json", {"--granularity", "head", "--headroom", "2"});
  calibrate(folder, "new.json", {"--policy", "head*2", "--headroom", "2.0"});
  CHECK(text_of(folder, "amax.json") == text_of(folder, "plain.json"));
  CHECK(text_of(folder, "new.json") == text_of(folder, "old.json"));
  CHECK(text_of(folder, "plain.json").find("policy") == std::string::npos);
  CHECK(text_of(folder, "old.json").find("policy") == std::string::npos);
}

TEST_CASE("cli policy: flags that contradict a policy are refused with both") {
  const test::TempDir folder;
  const auto refusal = [&](const Arguments& arguments) {
    const test::CliResult result = run(folder, "calibrate", arguments);
    CHECK(result.exit_code == 2);
    return result.err;
  };
  CHECK(refusal({"--policy", "amax", "--granularity", "head"}) ==
        "fp8kv: calibrate: --policy amax and --granularity head contradict each other\n"
        "help: leave out --granularity\n");
  CHECK(refusal({"--policy", "head", "--granularity", "tensor"}) ==
        "fp8kv: calibrate: --policy head and --granularity tensor contradict each other\n"
        "help: leave out --granularity\n");
  CHECK(refusal({"--headroom", "2", "--policy", "amax*4"}) ==
        "fp8kv: calibrate: --policy amax*4 and --headroom 2 contradict each other\n"
        "help: leave out --headroom\n");
  CHECK(refusal({"--policy", "mse", "--headroom", "2"}) ==
        "fp8kv: calibrate: --policy mse and --headroom 2 contradict each other\n"
        "help: leave out --headroom\n");
  CHECK_FALSE(std::filesystem::exists(folder / "kv_cache_scales.json"));
}

TEST_CASE("cli policy: one that is none is refused alike in every command") {
  const test::TempDir folder;
  for (const char* command : {"calibrate", "eval"}) {
    CAPTURE(command);
    const test::CliResult result =
        test::run_cli({command, "m", "--data", "d", "--policy", "amx"}, folder.path());
    CHECK(result.exit_code == 2);
    CHECK(result.err ==
          cat("fp8kv: ", command,
              ": --policy: 'amx' is none of amax[*F], head[*F], shared[*F], loss[*F], "
              "head-loss[*F], mse, pNN.NN and unit (did you mean 'amax'?)\nhelp: see 'fp8kv ",
              command, " --help'\n"));
  }
  const test::CliResult merge =
      test::run_cli({"merge", "a.json", "-o", "b.json", "--policy", "p0"}, folder.path());
  CHECK(merge.err ==
        "fp8kv: merge: --policy: 'p0': the percentage 0 is not above 0 and at most 100\n"
        "help: see 'fp8kv merge --help'\n");
}

TEST_CASE("cli policy: the help of every command lists the same policies") {
  const test::TempDir folder;
  for (const char* command : {"calibrate", "eval", "merge"}) {
    CAPTURE(command);
    std::string help = test::run_cli({command, "--help"}, folder.path()).out;
    std::string words;  // with line breaks removed
    for (const char c : help) {
      if (c != '\n' && (c != ' ' || (!words.empty() && words.back() != ' '))) words += c;
      if (c == '\n' && !words.empty() && words.back() != ' ') words += ' ';
    }
    for (const PolicyKind& kind : policy_kinds()) {
      CHECK(words.find(cat("'", kind.spelling, "': ", kind.summary)) != std::string::npos);
    }
  }
}

TEST_CASE("cli policy: merge makes by a policy what one run would have made") {
  const test::TempDir folder;
  for (const char* index : {"0", "1"}) {
    calibrate(folder, cat("s", index, ".json"),
              {"--shard", cat(index, "/2"), "--policy", "loss", "--histograms", cat("h", index)});
  }
  for (const std::string& policy : kPolicies) {
    CAPTURE(policy);
    calibrate(folder, "whole.json", {"--policy", policy, "--force"});
    const test::CliResult merged =
        test::run_cli({"merge", "s1.json", "s0.json", "-o", "merged.json", "-q", "--force",
                       "--policy", policy, "--histograms", "h0", "h1"},
                      folder.path());
    CHECK(merged.exit_code == 0);
    CHECK(text_of(folder, "merged.json") == text_of(folder, "whole.json"));
  }
  const test::CliResult refused = test::run_cli(
      {"merge", "s0.json", "s1.json", "-o", "x.json", "--policy", "mse", "--histograms", "h0"},
      folder.path());
  CHECK(refused.exit_code == 3);
  CHECK(refused.err ==
        "fp8kv: merge: 's1.json': the histograms of what it counted are not there, and the policy "
        "'mse' needs them\n"
        "help: 'fp8kv calibrate --histograms FILE' writes them; name those of all parts\n");
  CHECK_FALSE(std::filesystem::exists(folder / "x.json"));
}

TEST_CASE("cli policy: a shard that cannot be merged without histograms is warned of") {
  const test::TempDir folder;
  const auto said = [&](const Arguments& more) {
    Arguments arguments = {"calibrate", kDemo,       "--data", kText,     "--samples",
                           "2",         "--seq-len", "16",     "--shard", "0/2",
                           "-o",        "s.json",    "--force"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return test::run_cli(arguments, folder.path()).err;
  };
  const std::string warning =
      "warning: 'fp8kv merge' needs the histograms of every shard for the policy 'loss': add "
      "--histograms FILE\n";
  CHECK(said({"--policy", "loss"}).find(warning) != std::string::npos);
  CHECK(said({"--policy", "loss", "--histograms", "h"}).find("warning") == std::string::npos);
  CHECK(said({"--policy", "head"}).find("warning") == std::string::npos);
}

TEST_CASE("cli policy: the certificate says which policy made the scales") {
  const test::TempDir folder;
  calibrate(folder, "s.json", {"--policy", "p099.90"});
  const auto shown = [&](const Arguments& arguments) {
    return test::run_cli(arguments, folder.path()).out;
  };
  const std::string text = shown({"inspect", "--certificate", "s.json"});
  CHECK(text.find("\npolicy    p99.9\n") != std::string::npos);
  CHECK(text.find(": 'fp8kv eval --policy amax,p99.9' says what it costs\n") != std::string::npos);
  const Json json = Json::parse(shown({"inspect", "--certificate", "--json", "s.json"}), "stdout");
  CHECK(json.at("certificate").at("policy").as_string() == "p99.9");
}

TEST_CASE("cli policy: a scale that cannot be used is refused before anything is written") {
  const test::TempDir folder;
  test::write_tiny_checkpoint(folder / "m", test::tiny_config());
  std::vector<test::TinyTensor> tensors = test::tiny_tensors(test::tiny_config());
  for (test::TinyTensor& tensor : tensors) {
    // Makes amax / 448 smaller than the least normal number, 1.2e-38.
    if (tensor.name != "model.layers.1.self_attn.k_proj.weight") continue;
    for (float& value : tensor.values) value *= 1e-37f;
  }
  test::write_tiny_weights(folder / "m", tensors, DType::f32);
  folder.write("ids.jsonl", "{\"input_ids\": [3, 4, 5]}\n");
  const test::CliResult result = test::run_cli({"calibrate", "m", "--data", "ids.jsonl", "-o",
                                                "s.json", "--histograms", "h.safetensors", "-q"},
                                               folder.path());
  CHECK(result.exit_code == 3);
  CHECK(result.err.starts_with("fp8kv: calibrate: policy 'amax': layer 1: the K scale is "));
  CHECK_FALSE(std::filesystem::exists(folder / "h.safetensors"));
  CHECK_FALSE(std::filesystem::exists(folder / "s.json"));
}

}  // namespace
}  // namespace fp8kv
