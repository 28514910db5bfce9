// Drafters with a checkpoint of their own (EAGLE-3) in every command.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "json/json.h"
#include "support/models/drafter_golden.h"
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
    std::vector<std::string> arguments = {
        "calibrate", "drafter",   "--target", "target", "--data",      "d.jsonl",  "--samples",
        "1",         "--seq-len", "64",       "--out",  "scales.json", "--device", "cpu"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }

  std::string read(const std::string& name) const { return test::read_file(golden.folder / name); }

  test::DrafterGolden golden;
};

using test::says;

}  // namespace

TEST_CASE("cli drafters: the whole way, from calibrate to a folder and back") {
  for (const auto& [name, layer] : {std::pair{"flat", "midlayer"}, {"speculators", "layers.0"}}) {
    CAPTURE(name);
    const Place place(name);
    const test::CliResult made = place.calibrate();
    CAPTURE(made.err);
    REQUIRE(made.exit_code == 0);
    CHECK(
        says(made.out, "made      scales of 1 layer, one per tensor, from 40 tokens in 1 window"));
    CHECK(says(made.out, "loss      not measured: count accepted drafts on the server"));
    const Json said = Json::parse(place.calibrate({"--json", "--force"}).out, "stdout");
    const double k_amax = said.at("layers")[0].at("k_amax")[0].as_double();
    const double expected = test::numbers_of(place.golden.golden.at("k_amax"))[0];
    CHECK(k_amax == doctest::Approx(expected).epsilon(test::kAmaxTolerance));

    const test::CliResult injected =
        place.run({"inject", "drafter", "--scales", "scales.json", "--out", "out"});
    CAPTURE(injected.err);
    CHECK(injected.exit_code == 0);
    CHECK(says(injected.out,
               "vllm serve MODEL --speculative-config.method eagle3 "
               "--speculative-config.model out "));
    const std::string names = place.run({"inspect", "out/model-kv-scales.safetensors"}).out;
    CHECK(says(names, std::string(layer) + ".self_attn.attn.k_scale"));
    CHECK(place.run({"diff", "scales.json", "out"}).exit_code == 0);
    const test::CliResult verified =
        place.run({"verify", "out", "--runtime", "vllm", "--runtime", "sglang"});
    CAPTURE(verified.out);
    CHECK(verified.exit_code == 0);
    CHECK(says(verified.out, "when it drafts with an FP8 cache: into the drafter's own attention"));
    CHECK(says(verified.out, "--speculative-draft-model-path out --kv-cache-dtype fp8_e4m3"));
  }
}

TEST_CASE("cli drafters: inspect says that it is one") {
  const Place place("flat");
  CHECK(says(place.run({"inspect", "drafter"}).out,
             "LlamaForCausalLMEagle3 (llama), a drafter (EAGLE-3): calibrate it with --target"));
  const Json json = Json::parse(place.run({"inspect", "drafter", "--json"}).out, "stdout");
  CHECK(json.at("drafter").as_bool());
  CHECK(!json.at("supported").as_bool());
}

TEST_CASE("cli drafters: an assistant of Gemma 4 has no cache of its own") {
  const Place place("flat");
  std::string config = place.read("target/config.json");
  const std::string type = "\"smollm3\"";
  REQUIRE(config.find(type) != config.npos);
  config.replace(config.find(type), type.size(), "\"gemma4_assistant\"");
  place.golden.folder.write("target/config.json", config);
  const std::string words =
      "model_type: gemma4_assistant drafts from the KV cache of its model, and has none\n"
      "help: take that model: its scales serve both\n";
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"verify", "target"},
        {"plan", "target"},
        {"calibrate", "target", "--data", "d.jsonl", "--device", "cpu"}}) {
    const test::CliResult result = place.run(arguments);
    CAPTURE(result.err);
    CHECK(result.exit_code == 3);
    CHECK(says(result.err, words));
  }
  CHECK(says(place.run({"inspect", "target"}).out, "gemma4_assistant drafts from the KV cache"));
}

TEST_CASE("cli drafters: scales of another drafter are refused") {
  const Place place("flat");
  REQUIRE(place.calibrate().exit_code == 0);
  std::string weights = place.read("drafter/model.safetensors");
  weights[weights.size() - 40'000] ^= 0x40;
  place.golden.folder.write("drafter/model.safetensors", weights);
  const test::CliResult injected =
      place.run({"inject", "drafter", "--scales", "scales.json", "--out", "out"});
  CHECK(says(injected.err, "was calibrated on"));
}

TEST_CASE("cli drafters: what cannot be is said with a way out") {
  const Place place("flat");
  struct Refusal {
    std::vector<std::string> arguments;
    int exit_code;
    const char* says;
  };
  const std::vector<std::string> data = {"--data", "d.jsonl", "--device", "cpu"};
  const Refusal refusals[] = {
      {{"calibrate", "drafter"}, 3, "with --target MODEL measures it"},
      {{"eval", "drafter"}, 3, "with --target MODEL measures it"},
      {{"calibrate", "target", "--target", "drafter"}, 3, "is no drafter that is known here"},
      {{"calibrate", "drafter", "--target", "drafter"}, 3, "is a drafter (EAGLE-3)"},
      {{"calibrate", "drafter", "--target", "target", "--policy", "loss"},
       2,
       "measures losses, which drafters have none of here"},
      {{"calibrate", "drafter", "--target", "target", "--resume"},
       2,
       "--target and --resume cannot be given together"}};
  for (const Refusal& refusal : refusals) {
    std::vector<std::string> arguments = refusal.arguments;
    arguments.insert(arguments.end(), data.begin(), data.end());
    const test::CliResult result = place.run(arguments);
    CAPTURE(result.err);
    CHECK(result.exit_code == refusal.exit_code);
    CHECK(says(result.err, refusal.says));
  }
  const test::CliResult with = place.run({"verify", "drafter", "--with", "python3"});
  CHECK(with.exit_code == 3);
  CHECK(says(with.err, "is a drafter, which no runtime loads without its target"));
}

TEST_CASE("cli drafters: a config that asks for another input is refused by its key") {
  struct Change {
    const char* name;
    const char* from;
    const char* to;
    const char* says;
  };
  constexpr Change kChanges[] = {
      {"flat", "\"num_hidden_layers\": 1", "\"num_hidden_layers\": 2", "has 2 layers, and one is"},
      {"flat", "\"use_aux_hidden_state\": true", "\"use_aux_hidden_state\": false",
       "use_aux_hidden_state: is false"},
      {"flat", "\"draft_vocab_size\": 20", "\"norm_before_fc\": true", "norm_before_fc: is true"},
      {"flat", "\"draft_vocab_size\": 20", "\"fc_norm\": true", "fc_norm: is true"},
      {"flat", "\"draft_vocab_size\": 20", "\"use_aux_norm\": true", "use_aux_norm: is true"},
      {"flat", "\"norm.weight\"", "\"fc_norm.0.weight\"",
       "'fc_norm.0.weight' in 'changed': norms hidden states before 'fc'"},
      {"flat", "[0, 1, 2]", "[0, 1]", "expected 3 layers in ascending order"},
      {"flat", "[0, 1, 2]", "[0, 1, 7]", "reads the inputs of layers 1, 2 and 8"},
      {"flat", "\"model_type\": \"llama\"", "\"model_type\": \"qwen3\"",
       "expected \"llama\": layers of other drafters"},
      {"speculators", "\"attention_bias\": true", "\"attention_bias\": false", "k_proj.bias' in "}};
  for (const Change& change : kChanges) {
    CAPTURE(change.to);
    const Place place(change.name);
    std::string text = test::read_file(test::source_dir() / "tests/golden/drafters" /
                                       (std::string(change.name) + ".json"));
    const size_t at = text.find(change.from);
    REQUIRE(at != text.npos);
    text.replace(at, std::string(change.from).size(), change.to);
    test::write_golden_model(place.golden.folder / "changed", Json::parse(text, "golden"));
    const test::CliResult made = place.run(
        {"calibrate", "changed", "--target", "target", "--data", "d.jsonl", "--device", "cpu"});
    CAPTURE(made.err);
    CHECK(made.exit_code == 3);
    CHECK(says(made.err, change.says));
  }
}

}  // namespace fp8kv
