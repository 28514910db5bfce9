// Draft layers in every command.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "json/json.h"
#include "support/models/draft_golden.h"
#include "support/program/run_cli.h"
#include "support/says.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

struct Place {
  explicit Place(const std::string& name) : golden(name) {}

  test::CliResult run(const std::vector<std::string>& arguments) const {
    return test::run_cli(arguments, golden.folder.path());
  }
  test::CliResult calibrate(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"calibrate", "m",           "--data",    "d.jsonl",
                                          "--samples", "1",           "--seq-len", "64",
                                          "--out",     "scales.json", "--device",  "cpu"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }

  std::string read(const std::string& name) const { return test::read_file(golden.folder / name); }

  test::DraftGolden golden;
};

using test::says;

Json draft_of(const std::string& text) {
  return Json::parse(text, "stdout").at("draft_layers")[0];
}

}  // namespace

TEST_CASE("cli drafts: calibrate measures a draft layer, and says that it did") {
  const Place place("glm4-moe");
  const test::CliResult made = place.calibrate();
  CHECK(made.exit_code == 0);
  CHECK(says(made.err, "scales of 3 layers and 1 draft layer from"));
  CHECK(says(made.out, "made      scales of 3 layers and 1 draft layer, one per tensor, from "));
  CHECK(says(place.calibrate({"--table", "--force"}).out, "model.layers.3"));
  const Json in_file = Json::parse(place.read("scales.json"), "file").at("fp8kv");
  CHECK(in_file.at("draft_layers")[0].at("layer").as_string() == "model.layers.3");
  const Json said = draft_of(place.calibrate({"--json", "--force"}).out);
  CHECK(said.at("k_scale")[0].as_double() ==
        in_file.at("draft_layers")[0].at("k_scale")[0].as_double());
  const test::CliResult head = place.calibrate({"--granularity", "head", "--force"});
  CHECK(head.exit_code == 0);
}

TEST_CASE("cli drafts: what is not measured is warned of with the reason") {
  const Place place("glm4-moe");
  std::string weights = place.read("m/model.safetensors");
  const std::string norm = "model.layers.3.enorm.weight";
  REQUIRE(weights.find(norm) != std::string::npos);
  weights.replace(weights.find(norm), norm.size(), "model.layers.3.onorm.weight");
  place.golden.folder.write("m/model.safetensors", weights);
  const test::CliResult made = place.calibrate();
  CHECK(made.exit_code == 0);
  CHECK(says(made.err, "warning: draft layer model.layers.3: "));
  CHECK(says(made.err, "model.layers.3.enorm.weight"));
  CHECK(says(made.err, "no scale is made for its cache, where runtimes then use 1"));
  CHECK(!says(place.read("scales.json"), "draft_layers"));
  CHECK(says(place.run({"inspect", "m"}).out,
             "draft layers      1, with a KV cache each: model.layers.3, no scales"));
}

TEST_CASE("cli drafts: the whole way, from calibrate to a folder and back") {
  for (const char* name : {"glm4-moe", "qwen3.5", "deepseek-v3"}) {
    CAPTURE(name);
    const Place place(name);
    REQUIRE(place.calibrate().exit_code == 0);
    const test::CliResult injected =
        place.run({"inject", "m", "--scales", "scales.json", "--out", "out"});
    CHECK(injected.exit_code == 0);
    // The folder also stores the maxima of draft layers, so extract restores the whole file.
    CHECK(place.run({"extract", "out", "-o", "-"}).out == place.read("scales.json"));
    CHECK(!says(injected.err, "draft layer"));
    const Json inspected = draft_of(place.run({"inspect", "out", "--json"}).out);
    CHECK(inspected.at("layer").as_string() == place.golden.layer);
    CHECK(inspected.at("scales").as_bool());
    CHECK(says(place.run({"extract", "out", "--out", "again.json"}).err, "and 1 draft layer"));
    const test::CliResult diff = place.run({"diff", "scales.json", "again.json"});
    CHECK(diff.exit_code == 0);
    CHECK(says(diff.out, "no of 1 draft layer differs"));
  }
}

TEST_CASE("cli drafts: verify has a line for each draft layer and runtime") {
  const Place place("qwen3.5");
  REQUIRE(place.calibrate().exit_code == 0);
  REQUIRE(place.run({"inject", "m", "--scales", "scales.json", "--out", "out"}).exit_code == 0);
  const test::CliResult with = place.run({"verify", "out", "--runtime", "vllm"});
  CHECK(with.exit_code == 0);
  CHECK(says(with.out, "mtp.layers.0  vLLM"));
  CHECK(says(with.out, "loads"));
  const Json json =
      Json::parse(place.run({"verify", "out", "--runtime", "vllm", "--json"}).out, "stdout");
  const Json draft = json.at("runtimes")[0].at("draft_layers")[0];
  CHECK(draft.at("layer").as_string() == "mtp.layers.0");
  CHECK(draft.at("result").as_string() == "loads");
  CHECK(draft.at("tensors").size() == 2);
}

TEST_CASE("cli drafts: a folder whose draft layer has no scales says so everywhere") {
  const Place place("qwen3.5");
  REQUIRE(place.calibrate().exit_code == 0);
  std::string text = place.read("scales.json");
  const size_t at = text.find(",\n    \"draft_layers\"");
  REQUIRE(at != std::string::npos);
  place.golden.folder.write("plain.json", text.substr(0, at) + "\n  }\n}\n");
  const test::CliResult injected =
      place.run({"inject", "m", "--scales", "plain.json", "--out", "out"});
  CHECK(injected.exit_code == 0);
  CHECK(says(injected.err, "warning: the draft layer mtp.layers.0 gets no scales"));
  CHECK(says(place.run({"inspect", "out"}).out, "mtp.layers.0, no scales"));
  const test::CliResult verified = place.run({"verify", "out", "--runtime", "vllm"});
  CHECK(verified.exit_code == 0);
  CHECK(says(verified.out, "has no scales: with the drafts on"));
  const test::CliResult diff = place.run({"diff", "scales.json", "plain.json"});
  CHECK(diff.exit_code == 1);
  CHECK(says(diff.err, "differ in 1 of 1 draft layer"));
}

TEST_CASE("cli drafts: shards merge to the scales of one run, and by histograms they are refused") {
  const Place place("qwen3-next");
  std::string data;
  for (int line = 0; line < 4; ++line) {
    data += "{\"input_ids\": [";
    for (int i = 0; i < 30; ++i)
      data += (i ? ", " : "") + std::to_string(3 + (i * 7 + line * 5) % 70);
    data += "]}\n";
  }
  place.golden.folder.write("four.jsonl", data);
  const auto calibrate = [&](const std::string& out, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"calibrate", "m", "--data",    "four.jsonl",
                                          "--samples", "4", "--seq-len", "32",
                                          "--out",     out};
    arguments.insert(arguments.end(), more.begin(), more.end());
    CHECK(place.run(arguments).exit_code == 0);
  };
  calibrate("whole.json", {});
  calibrate("a.json", {"--shard", "0/2"});
  calibrate("b.json", {"--shard", "1/2"});
  REQUIRE(place.run({"merge", "a.json", "b.json", "--out", "both.json"}).exit_code == 0);
  CHECK(place.read("both.json") == place.read("whole.json"));
  calibrate("c.json", {"--shard", "0/2", "--policy", "mse", "--histograms", "c.st"});
  calibrate("d.json", {"--shard", "1/2", "--policy", "mse", "--histograms", "d.st"});
  const test::CliResult refused = place.run({"merge", "c.json", "d.json", "--histograms", "c.st",
                                             "--histograms", "d.st", "--out", "no.json"});
  CHECK(refused.exit_code == 3);
  CHECK(says(refused.err, "has scales of draft layers (mtp.layers.0"));
}

TEST_CASE("cli drafts: a policy of losses gives draft layers the scales of amax, and says so") {
  const Place place("glm4-moe");
  const auto calibrate = [&](const std::string& policy) {
    return place.calibrate({"--policy", policy, "--json", "--force"});
  };
  const test::CliResult result = calibrate("loss*2");
  CHECK(result.exit_code == 0);
  CHECK(says(result.err,
             "draft layer model.layers.3: losses are not measured there; its scales are those of "
             "'amax*2'\n"));
  const Json draft = draft_of(result.out), plain = draft_of(calibrate("amax*2").out);
  for (const char* tensor : {"k_scale", "v_scale"}) {
    CHECK(draft.at(tensor)[0].as_double() == plain.at(tensor)[0].as_double());
  }
}

}  // namespace fp8kv
