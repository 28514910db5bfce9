// Runs `fp8kv equalize` as a process: outputs, messages and refusals.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "checkpoint/checkpoint.h"
#include "json/json.h"
#include "support/models/family_model.h"
#include "support/models/tiny_checkpoint.h"
#include "support/models/tiny_config.h"
#include "support/places.h"
#include "support/program/killed_runs.h"
#include "support/program/run_cli.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

// A BF16 model whose first pair of K is 32 times too large, and a text for it.
class EqualizePlace {
 public:
  explicit EqualizePlace(int64_t head_dim = 8) {
    test::TinyConfig config = test::tiny_config();
    config.head_dim = head_dim;
    config.dtype = DType::bf16;
    std::vector<test::TinyTensor> tensors = test::tiny_tensors(config);
    for (test::TinyTensor& each : tensors) {
      if (each.name.find("k_proj") == each.name.npos) continue;
      const auto columns = static_cast<size_t>(each.shape[1]);
      for (size_t i = 0; i < each.values.size(); ++i) {
        if (i / columns % 4 == 0) each.values[i] *= 32;
      }
    }
    fs::create_directory(temp_ / "m");
    temp_.write("m/config.json", test::tiny_config_json(config));
    test::write_tiny_weights(temp_ / "m", tensors, DType::bf16, 2);
    temp_.write("m/notes.txt", "{}");
    std::string text;
    for (int window = 0; window < 8; ++window) {
      text += "{\"input_ids\": [1";
      for (int i = 1; i < 40; ++i) text += ", " + std::to_string((7 * i * (window + 3)) % 64);
      text += "]}\n";
    }
    temp_.write("data.jsonl", text);
  }

  test::CliResult run(const Strings& more, const std::string& model = "m") const {
    return test::run_cli(arguments(more, model), temp_.path());
  }
  // Makes the model "quantised" from "m".
  void quantize(const Strings& more) const {
    Strings arguments = {"quantize", "m", "-o", "quantised", "-q"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    REQUIRE(test::run_cli(arguments, temp_.path()).exit_code == 0);
  }
  std::string refusal(const Strings& more, int exit_code = 3,
                      const std::string& model = "m") const {
    const test::CliResult result = run(more, model);
    CHECK(result.exit_code == exit_code);
    CHECK(result.out.empty());
    CHECK(!fs::exists(temp_ / "out"));
    return result.err;
  }
  bool killed_after_a_layer(const Strings& more) const {
    return test::killed_after("out.partial/layer-0.json", temp_.path(), arguments(more, "m"), 3);
  }
  fs::path operator/(const std::string& name) const { return temp_ / name; }
  const test::TempDir& folder() const { return temp_; }

 private:
  static Strings arguments(const Strings& more, const std::string& model) {
    Strings all = {"equalize", model, "--data", "data.jsonl", "-o", "out", "--device", "cpu"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  test::TempDir temp_;
};

double kld_of(const Json& result, const char* when) {
  return result.at("kld")[0].at(when).as_double();
}

}  // namespace

TEST_CASE("cli equalize: makes a bit-equal folder whose cache loses less, and records it") {
  const EqualizePlace place;
  const test::CliResult result = place.run({"--for", "int8", "--json"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const Json json = Json::parse(result.out, "result");
  CHECK(json.at("for").as_string() == "int8_per_token_head");
  CHECK(json.at("bit_equal_in").as_string() == "BF16");
  CHECK(json.at("bit_equal_tokens").as_int() == 80);
  CHECK(json.at("heads").as_int() == 4);
  CHECK(json.at("heads_equalised").as_int() == 4);
  CHECK(kld_of(json, "after") < kld_of(json, "before") / 2);
  const Json record = Json::read(place / "out/fp8kv_equalize.json");
  CHECK(record.at("model").as_string() == "m");
  CHECK(record.at("layers").size() == 2);
  CHECK(record.at("layers")[0].at("k_exponents")[0].size() == 8);
  CHECK(test::read_file(place / "out/notes.txt") == "{}");
  // Generates text from a 16-bit cache, to compare both models.
  const auto text_of = [&](const std::string& model) {
    return test::run_cli({"run", model, "--input-ids", "1,5,9", "--max-tokens", "8",
                          "--kv-cache-dtype", "bf16", "--device", "cpu", "--json"},
                         place.folder().path())
        .out;
  };
  CHECK(text_of("out") == text_of("m"));
}

TEST_CASE("cli equalize: other commands know where a folder came from") {
  const EqualizePlace place;
  const fs::path& here = place.folder().path();
  REQUIRE(place.run({"--for", "int8", "-q"}).exit_code == 0);
  for (const char* model : {"m", "out"}) {
    const std::string scales = std::string(model) + ".json";
    REQUIRE(test::run_cli(
                {"calibrate", model, "--data", "data.jsonl", "-o", scales, "--device", "cpu", "-q"},
                here)
                .exit_code == 0);
  }
  const std::string fingerprint =
      Json::read(place / "out/fp8kv_equalize.json").at("fingerprint").as_string();
  const test::CliResult text = test::run_cli({"inspect", "out"}, here);
  CHECK(text.out.find("for int8_per_token_head, from 'm' (" + fingerprint + ")\n") !=
        std::string::npos);
  const Json json = Json::parse(test::run_cli({"inspect", "out", "--json"}, here).out, "inspect");
  CHECK(json.at("equalised").at("fingerprint").as_string() == fingerprint);
  CHECK(test::run_cli({"inspect", "m"}, here).out.find("equalised") == std::string::npos);

  // Scales of the original do not fit. Those of the folder itself do.
  const test::CliResult refused =
      test::run_cli({"inject", "out", "--scales", "m.json", "-o", "bad"}, here);
  CHECK(refused.exit_code == 3);
  CHECK(refused.err.find("'m.json': was calibrated on another model than 'out': 'out' was "
                         "equalised for int8_per_token_head from 'm', which changed its K\n") !=
        std::string::npos);
  const test::CliResult injected =
      test::run_cli({"inject", "out", "--scales", "out.json", "-o", "good"}, here);
  CHECK(injected.exit_code == 0);
  const std::string note = "note: 'out' was equalised for int8_per_token_head from 'm'";
  CHECK(injected.err.find(note) != std::string::npos);
  REQUIRE(
      test::run_cli({"inject", "m", "--scales", "m.json", "-o", "plain", "-q"}, here).exit_code ==
      0);
  const test::CliResult diff = test::run_cli({"diff", "plain", "good"}, here);
  CHECK(diff.exit_code == 1);
  CHECK(diff.err.find("note: 'good': was equalised for int8_per_token_head from 'm', so its K has "
                      "factors that the original's has not\n") != std::string::npos);
}

TEST_CASE("cli equalize: says how many heads, the proof, what caches lose, and how to serve") {
  const EqualizePlace place;
  const test::CliResult result = place.run({"--for", "int8_per_token_head"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.out.starts_with("4 of 4 heads equalised for int8_per_token_head, exponents from "));
  CHECK(result.out.find("\nLogits: bit-equal in BF16 on 80 held-out tokens\n") !=
        std::string::npos);
  CHECK(result.out.find("\nfp8_e4m3 amax K and V") != std::string::npos);
  CHECK(result.out.ends_with("  vllm serve out --kv-cache-dtype int8_per_token_head\n"));
}

TEST_CASE("cli equalize: FP8 weights with a scale for each row take factors in their scales") {
  const EqualizePlace place;
  place.quantize({"--scheme", "fp8-dynamic"});
  const test::CliResult result = place.run({"--for", "int8"}, "quantised");
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.out.starts_with("4 of 4 heads equalised for int8_per_token_head, exponents from "));
  CHECK(result.out.find("\nLogits: bit-equal in BF16 on 80 held-out tokens\n") !=
        std::string::npos);
  const Checkpoint before = Checkpoint::open(place / "quantised");
  const Checkpoint after = Checkpoint::open(place / "out");
  for (const auto& [name, location] : before.tensors()) {
    CAPTURE(name);
    const bool takes =
        name.ends_with("q_proj.weight_scale") || name.ends_with("k_proj.weight_scale");
    CHECK((before.read(name) == after.read(name)) == !takes);
  }
  CHECK(test::read_file(place / "out/config.json") ==
        test::read_file(place / "quantised/config.json"));
}

TEST_CASE("cli equalize: quantised weights with a scale for several rows are refused by name") {
  const auto refusal_of = [](const Strings& scheme) {
    const EqualizePlace place;
    place.quantize(scheme);
    return place.refusal({"--for", "int8"}, 3, "quantised");
  };
  const std::string help =
      "help: equalise the 16-bit model that it was made from, then quantise that\n";
  CHECK(refusal_of({"--scheme", "fp8-block"}) ==
        "fp8kv: equalize: 'quantised': tensor 'model.layers.0.self_attn.q_proj.weight_scale': is "
        "BF16 [1, 1] (fp8, one scale), expected a scale for each row, since rows take different "
        "factors\n" +
            help);
  CHECK(refusal_of({"--scheme", "fp8-static", "--data", "data.jsonl", "--device", "cpu"}) ==
        "fp8kv: equalize: 'quantised': tensor 'model.layers.0.self_attn.q_proj.weight_scale': is "
        "BF16 [1] (fp8, one scale), expected a scale for each row, since rows take different "
        "factors\n" +
            help);
}

TEST_CASE("cli equalize: for NVFP4, whose scales are made afterwards") {
  const EqualizePlace place(16);
  const test::CliResult result = place.run({"--for", "nvfp4"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.out.find("\nLogits: bit-equal in BF16 on 80 held-out tokens\n") !=
        std::string::npos);
  CHECK(result.out.find("\nnvfp4 K and V") != std::string::npos);
  CHECK(result.out.ends_with("  fp8kv calibrate out --data FILE, then fp8kv inject\n"));
}

TEST_CASE("cli equalize: the same bytes for any number of threads") {
  const EqualizePlace place;
  std::map<std::string, std::string> first;
  for (const char* threads : {"1", "3"}) {
    REQUIRE(place.run({"--for", "int8", "--threads", threads, "--force", "-q"}).exit_code == 0);
    for (const auto& entry : fs::directory_iterator(place / "out")) {
      const std::string name = entry.path().filename().string();
      if (name == "fp8kv-files.txt") continue;
      const std::string bytes = test::read_file(entry.path());
      CHECK(first.try_emplace(name, bytes).first->second == bytes);
    }
  }
}

TEST_CASE("cli equalize: --resume takes exponents of searched layers, of the same run alone") {
  if (test::fault_shim().empty()) {
    test::skip("sanitizers must be loaded before the shim");
    return;
  }
  const EqualizePlace expected, place;
  REQUIRE(expected.run({"--for", "int8"}).exit_code == 0);
  const Strings resumed = {"--for", "int8", "--resume", "--threads", "1"};
  REQUIRE(place.killed_after_a_layer(resumed));
  CHECK(place.refusal({"--for", "int8", "--resume", "--samples", "6"})
            .ends_with("fp8kv: equalize: 'out.partial': is of a run with another model, other "
                       "options or another version\nhelp: run that again to go on, or remove it: "
                       "rm -r out.partial\n"));
  const test::CliResult result = place.run(resumed);
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.err.find("took 1 layer of an earlier run\n") != std::string::npos);
  CHECK(!fs::exists(place / "out.partial"));
  for (const auto& entry : fs::directory_iterator(place / "out")) {
    const std::string name = entry.path().filename().string();
    if (name == "fp8kv-files.txt") continue;
    CHECK(test::read_file(entry.path()) == test::read_file(expected / ("out/" + name)));
  }
}

TEST_CASE("cli equalize: --resume searches layers again whose exponents were damaged since") {
  if (test::fault_shim().empty()) {
    test::skip("sanitizers must be loaded before the shim");
    return;
  }
  const EqualizePlace place;
  const Strings resumed = {"--for", "int8", "--resume", "--threads", "1"};
  REQUIRE(place.killed_after_a_layer(resumed));
  place.folder().write("out.partial/layer-0.json", "[[9,9,9,9],[0,0,0,0]]");
  const test::CliResult result = place.run(resumed);
  CHECK(result.exit_code == 0);
  CHECK(result.err.find("'out.partial/layer-0.json': changed since it was finished: the exponents "
                        "of this layer are searched again\n") != std::string::npos);
  CHECK(result.err.find("of an earlier run") == std::string::npos);
  CHECK(!fs::exists(place / "out.partial"));
}

TEST_CASE("cli equalize: a dry run writes nothing, and what cannot be equalised is refused") {
  const EqualizePlace place;
  CHECK(place.run({"--for", "int8", "--dry-run"}).exit_code == 0);
  CHECK(!fs::exists(place / "out"));
  CHECK(place.refusal({"--for", "nvfp4"}).find("--for nvfp4: heads of layer 0 have 8 elements") !=
        std::string::npos);
  CHECK(place.refusal({"--for", "fp8"}, 2).find("fp8") != std::string::npos);
  CHECK(place.refusal({"--for", "int8", "--samples", "3"}).find("shorter --seq-len") !=
        std::string::npos);
  test::write_golden_model(place / "narrow", test::family_golden("mimo-v2"));
  CHECK(
      place.refusal({"--for", "int8"}, 3, "narrow") ==
      "fp8kv: equalize: --for int8: layer 0 caches K of 12 elements and V of 8, expected heads of "
      "one size for this format\n"
      "help: calibrate scales for an FP8 cache instead: it takes every layer\n");
  place.folder().write("m/fp8kv_equalize.json", "{}");
  CHECK(place.refusal({"--for", "int8"}).find("was equalised already") != std::string::npos);
}

}  // namespace fp8kv
