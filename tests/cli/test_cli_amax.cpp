// Every command reads scale files whose scales do not follow from their amax.
#include <algorithm>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "json/json.h"
#include "support/models/tiny_checkpoint.h"
#include "support/program/run_cli.h"
#include "support/says.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

std::string text_of(const Json& json) {
  JsonWriter out;
  return out.value(json).text();
}

// The tiny model, and its scale file.
struct Shell {
  explicit Shell(const std::string& policy = "amax") {
    test::write_tiny_checkpoint(temp / "model", test::tiny_config());
    temp.write("ids.jsonl", "{\"input_ids\": [1, 5, 9, 33]}\n");
    const Strings command = {"calibrate", "model",  "--data",   "ids.jsonl",
                             "-o",        "s.json", "--policy", policy};
    CHECK(run(command).exit_code == 0);
  }

  test::CliResult run(const Strings& arguments) const {
    return test::run_cli(arguments, {.folder = temp.path()});
  }
  // Multiplies the scale of V in layer 1 by `factor`, in both places of the file.
  void edit(float factor) const {
    const std::string text = test::read_file(temp / "s.json");
    const Json file = Json::parse(text, "s.json");
    const Json own = file.at("fp8kv");
    const auto times = [&](const Json& layer, bool edited) {
      std::vector<float> scales;
      const auto add = [&](const Json& scale) {
        scales.push_back(static_cast<float>(scale.as_double()) * (edited ? factor : 1));
      };
      for (size_t i = 0; i < layer.size(); ++i) add(layer[i]);
      return scales;
    };
    JsonWriter v, factors;
    v.begin_array();
    factors.begin_object().key("0").begin_object();
    for (size_t layer = 0; layer < 2; ++layer) {
      const std::vector<float> of_v = times(own.at("v_scale")[layer], layer == 1);
      const std::vector<float> of_k = times(own.at("k_scale")[layer], false);
      v.value(std::span<const float>(of_v));
      float most = 0;
      for (const float scale : of_v) most = std::max(most, scale);
      for (const float scale : of_k) most = std::max(most, scale);
      factors.member(cat(layer), most);
    }
    v.end_array();
    factors.end_object().end_object();
    const std::string cache =
        json_with_member(text_of(file.at("kv_cache")), "scaling_factor", factors.text());
    const std::string edited = json_with_member(text, "kv_cache", cache);
    temp.write("s.json", json_with_member(edited, "fp8kv",
                                          json_with_member(text_of(own), "v_scale", v.text())));
  }

  test::TempDir temp;
};

using test::says;

}  // namespace

TEST_CASE("cli amax: scales that contradict their amax are refused by every command") {
  const Shell shell;
  fs::copy_file(shell.temp / "s.json", shell.temp / "good.json");
  shell.edit(0.5f);
  for (const Strings& command :
       {Strings{"inject", "model", "-s", "s.json", "-o", "out"},
        {"inject", "model", "-s", "s.json", "--for", "json", "-o", "out.json"},
        {"run", "model", "-s", "s.json", "--prompt", "x", "--device", "cpu"},
        {"eval", "model", "-s", "s.json", "--data", "ids.jsonl", "--device", "cpu"},
        {"quantize", "model", "-s", "s.json", "-o", "out"},
        {"extract", "s.json", "-o", "out.json"},
        {"extract", "s.json", "--list"},
        {"inspect", "s.json"},
        {"inspect", "s.json", "--report", "out.html"},
        {"verify", "s.json"},
        {"diff", "s.json", "good.json"},
        {"diff", "good.json", "s.json"},
        {"merge", "s.json", "-o", "out.json"}}) {
    CAPTURE(join(command));
    const test::CliResult result = shell.run(command);
    CHECK(result.exit_code == 3);
    CHECK(says(result.err, "'s.json': layer 1, V: the scale is 0."));
    CHECK(says(result.err, ", but its amax of "));
    CHECK(says(result.err,
               "help: the file was edited: calibrate again; where that scale is wanted, "
               "take 'amax' out of the file's 'fp8kv' object"));
    CHECK(!fs::exists(shell.temp / "out"));
    CHECK(!fs::exists(shell.temp / "out.json"));
  }
}

TEST_CASE("cli amax: the way out is one") {
  const Shell shell;
  shell.edit(0.5f);
  const std::string text = test::read_file(shell.temp / "s.json");
  const Json own = Json::parse(text, "s.json").at("fp8kv");
  JsonWriter without;
  without.begin_object();
  for (size_t i = 0; i < own.size(); ++i) {
    if (own.key(i) != "amax") without.key(own.key(i)).value(own.value(i));
  }
  without.end_object();
  shell.temp.write("s.json", json_with_member(text, "fp8kv", without.text()));
  CHECK(shell.run({"inject", "model", "-s", "s.json", "-o", "out"}).exit_code == 0);
}

TEST_CASE("cli amax: scales of every policy follow from their amax, and rounded ones too") {
  for (const std::string policy :
       {"amax", "amax*2", "amax*0.3", "head", "head*1.5", "shared", "loss", "loss*1.3", "head-loss",
        "mse", "p99.9", "p10", "unit"}) {
    CAPTURE(policy);
    const Shell shell(policy);
    CHECK(shell.run({"inspect", "s.json"}).exit_code == 0);
    const Strings inject = {"inject", "model", "-s", "s.json", "-o"};
    Strings exact = inject, powers = inject;
    exact.push_back("exact");
    powers.insert(powers.end(), {"powers", "--scale-rounding", "power-of-two"});
    if (!policy.starts_with("head")) {
      CHECK(shell.run(exact).exit_code == 0);
      CHECK(shell.run(powers).exit_code == 0);
      CHECK(shell.run({"extract", "powers", "-o", "again.json"}).exit_code == 0);
      CHECK(shell.run({"inspect", "again.json"}).exit_code == 0);
    }
    CHECK(
        shell.run({"inject", "model", "-s", "s.json", "--for", "json", "-o", "j.json"}).exit_code ==
        0);
    CHECK(shell.run({"inspect", "j.json"}).exit_code == 0);
    shell.edit(64);
    CHECK(shell.run({"inspect", "s.json"}).exit_code == 3);
  }
}

}  // namespace fp8kv
