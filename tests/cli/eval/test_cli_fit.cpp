// Runs `fp8kv fit` as a process: choices, outputs and refusals.
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "files/file.h"
#include "json/json.h"
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

// A BF16 model and a text. K of layer 1 is large, so the cache of that layer loses most.
class FitPlace {
 public:
  explicit FitPlace(int64_t head_dim = 16) {
    test::TinyConfig config = test::tiny_config();
    config.head_dim = head_dim;
    config.dtype = DType::bf16;
    std::vector<test::TinyTensor> tensors = test::tiny_tensors(config);
    for (test::TinyTensor& each : tensors) {
      if (each.name.find("layers.1.self_attn.k_proj") == each.name.npos) continue;
      for (float& value : each.values) value *= 8;
    }
    fs::create_directory(temp_ / "m");
    temp_.write("m/config.json", test::tiny_config_json(config));
    test::write_tiny_weights(temp_ / "m", tensors, DType::bf16, 1);
    std::string text;
    for (int window = 0; window < 8; ++window) {
      text += "{\"input_ids\": [1";
      for (int i = 1; i < 40; ++i) text += ", " + std::to_string((7 * i * (window + 3)) % 64);
      text += "]}\n";
    }
    temp_.write("data.jsonl", text);
  }

  test::CliResult run(const Strings& more) const {
    return test::run_cli(arguments(more), temp_.path());
  }
  bool killed_after_measuring(const Strings& more, const std::string& file) const {
    return test::killed_after("out.json.partial/" + file, temp_.path(), arguments(more), 3);
  }
  Json json(Strings more) const {
    more.emplace_back("--json");
    const test::CliResult result = run(more);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return Json::parse(result.out, "fit");
  }
  std::string refusal(const Strings& more, int exit_code) const {
    const test::CliResult result = run(more);
    CHECK(result.exit_code == exit_code);
    return result.err;
  }
  fs::path operator/(const std::string& name) const { return temp_ / name; }
  const test::TempDir& folder() const { return temp_; }

 private:
  static Strings arguments(const Strings& more) {
    Strings all = {"fit", "m", "--data", "data.jsonl", "--device", "cpu"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  test::TempDir temp_;
};

bool says_that(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

}  // namespace

TEST_CASE("cli fit: leaves the layer that loses most in 16 bit, and records it") {
  const FitPlace place;
  const Json uniform = place.json({"--max-kld", "10", "--kv-cache-dtype", "fp8"});
  const Json& chosen = uniform.at("chosen");
  CHECK(chosen.at("kv_cache_dtype").as_string() == "fp8_e4m3");
  CHECK(chosen.at("skip_layers").size() == 0);
  const double loss = chosen.at("kld").as_double() + 2 * chosen.at("kld_error").as_double();
  REQUIRE(loss > 0);

  const Json less = place.json({"--max-kld", std::to_string(loss * 0.6), "--kv-cache-dtype", "fp8",
                                "-o", "s.json", "--report", "fit.html"});
  const Json& kept = less.at("chosen");
  CHECK(kept.at("kld").as_double() + 2 * kept.at("kld_error").as_double() <= loss * 0.6);
  REQUIRE(kept.at("skip_layers").size() >= 1);
  bool has_layer_1 = false;
  for (size_t i = 0; i < kept.at("skip_layers").size(); ++i) {
    has_layer_1 |= kept.at("skip_layers")[i].as_int() == 1;
  }
  CHECK(has_layer_1);
  const Json file = Json::read(place / "s.json");
  CHECK(file.at("kv_cache").at("dtype").as_string() == "float8_e4m3fn");
  CHECK(says_that(read_text(place / "s.json"), "\"skip_layers\""));
  CHECK(says_that(read_text(place / "fit.html"), "(chosen)"));

  // inject passes on the layers that the scale file leaves in 16 bit.
  const test::CliResult inject =
      test::run_cli({"inject", "m", "--scales", "s.json", "-o", "out"}, place.folder().path());
  CHECK(inject.exit_code == 0);
  CHECK(says_that(inject.out + inject.err, "--kv-cache-dtype-skip-layers"));
}

TEST_CASE("cli fit: gives the same bytes for any number of threads") {
  const FitPlace place;
  const Strings flags = {"--max-kld", "0.5", "--json", "--threads"};
  Strings one = flags, three = flags;
  one.emplace_back("1");
  three.emplace_back("3");
  const std::string out = place.run(one).out;
  CHECK(out == place.run(three).out);
  CHECK(says_that(out, "int8_per_token_head"));
  CHECK(says_that(out, "nvfp4"));
}

TEST_CASE("cli fit: a budget of bytes takes the least loss within it") {
  const FitPlace place;
  const Json all = place.json({"--bytes-per-token", "100000"});
  const int64_t full = all.at("baseline").at("bytes_per_token").as_int();
  const Json result = place.json({"--bytes-per-token", std::to_string(full * 3 / 4)});
  CHECK(result.at("chosen").at("bytes_per_token").as_int() <= full * 3 / 4);
  for (size_t i = 0; i < result.at("points").size(); ++i) {
    const Json& point = result.at("points")[i];
    if (point.at("bytes_per_token").as_int() > full * 3 / 4) continue;
    CHECK(point.at("kld").as_double() + 2 * point.at("kld_error").as_double() >=
          result.at("chosen").at("kld").as_double());
  }
  const Json memory = place.json({"--memory", "64MiB", "--context", "64", "--batch", "2"});
  CHECK(memory.at("unit").as_string() == "B/sequence");
}

TEST_CASE("cli fit: refuses what it cannot answer, and says what would do") {
  const FitPlace place;
  CHECK(says_that(place.refusal({}, 2), "needs a budget"));
  CHECK(says_that(place.refusal({"--max-kld", "1", "--bytes-per-token", "9"}, 2),
                  "takes one budget"));
  CHECK(says_that(place.refusal({"--max-kld", "1", "--for", "vlm"}, 2), "is not a runtime"));
  CHECK(says_that(place.refusal({"--max-kld", "1", "--for", "transformers"}, 2), "is not known"));
  CHECK(says_that(place.refusal({"--max-kld", "1", "--for", "vllm@all"}, 2), "expected one"));
  CHECK(says_that(
      place.refusal({"--max-kld", "1", "--for", "sglang", "--kv-cache-dtype", "nvfp4"}, 2),
      "SGLang takes fp8_e4m3 and fp8_e5m2, not nvfp4"));
  CHECK(says_that(place.refusal({"--max-kld", "1", "--kv-cache-dtype", "bfloat16"}, 2),
                  "16-bit cache"));
  CHECK(says_that(place.refusal({"--max-kld", "1e-12"}, 1), "no cache keeps --max-kld 1e-12"));
  CHECK(says_that(place.refusal({"--bytes-per-token", "1"}, 1), "the smallest is"));
  CHECK(says_that(place.refusal({"--max-kld", "1e-12", "--for", "sglang"}, 1),
                  "leaves no layers in 16 bit"));
  CHECK(says_that(place.refusal({"--max-kld", "1", "--samples", "1"}, 3), "too few windows"));
  CHECK(says_that(
      place.refusal(
          {"--max-kld", "10", "--kv-cache-dtype", "int8_per_token_head", "-o", "none.json"}, 2),
      "int8_per_token_head makes its own scales, so there is no scale file to write"));
  CHECK(says_that(place.refusal({"--max-kld", "10", "--kv-cache-dtype",
                                 "int8_per_token_head,int4_per_token_head", "-o", "none.json"},
                                2),
                  "int8_per_token_head and int4_per_token_head make their own scales"));
  CHECK_FALSE(fs::exists(place / "none.json"));
  CHECK(says_that(place.refusal({"--max-kld", "1", "--batch", "3"}, 2), "are for --memory"));
  CHECK(says_that(place.refusal({"--max-kld", "1", "--kv-cache-dtype", "fp8,fp8"}, 2),
                  "fp8_e4m3 is asked for twice"));
  CHECK(says_that(place.refusal({"--bytes-per-token", "9", "--context", "64"}, 2),
                  "--context is for --memory"));
  CHECK(says_that(place.refusal({"--memory", "1MiB", "--context", "99999999"}, 1),
                  "the smallest is"));
  CHECK(
      says_that(place.refusal({"--max-kld", "1", "-o", "-"}, 2), "standard output has the table"));
  CHECK(says_that(place.run({"--max-kld", "10", "--policy", "head"}).err,
                  "left out: nvfp4: policy head makes no scales for it"));
}

TEST_CASE("cli fit: with --out, caches that make their own scales are left out unless named") {
  const FitPlace place;
  const Strings flags = {"--max-kld", "10", "-o", "s.json", "--force"};
  const test::CliResult usual = place.run(flags);
  CHECK(usual.exit_code == 0);
  CHECK(says_that(usual.err, "left out: int8_per_token_head: makes its own scales"));
  CHECK(fs::exists(place / "s.json"));
  CHECK(says_that(place.run({"--max-kld", "10"}).out, "int8_per_token_head"));
  // The smallest cache that is good enough is chosen among those that the user names.
  CHECK(says_that(
      place.refusal(
          {"--max-kld", "10", "-o", "t.json", "--kv-cache-dtype", "fp8,int4_per_token_head"}, 1),
      "int4_per_token_head makes its own scales"));
  CHECK_FALSE(fs::exists(place / "t.json"));
}

TEST_CASE("cli fit: --resume takes the measurements of an earlier run, of the same one alone") {
  const FitPlace place;
  CHECK(says_that(place.refusal({"--max-kld", "1", "--resume"}, 2),
                  "--resume keeps measurements beside --out, which is not given"));
  if (test::fault_shim().empty()) {
    test::skip("sanitizers must be loaded before the shim");
    return;
  }
  const Strings flags = {"--max-kld", "10", "--threads", "1", "-o", "out.json"};
  const test::CliResult expected = place.run(flags);
  REQUIRE(fs::exists(place / "out.json"));
  const std::string scales = test::read_file(place / "out.json");
  fs::remove(place / "out.json");

  Strings resumed = flags;
  resumed.emplace_back("--resume");
  REQUIRE(place.killed_after_measuring(resumed, "measured-0.json"));
  Strings other = resumed;
  other[1] = "20";
  CHECK(says_that(place.refusal(other, 3), "is of a run with another model, other options"));
  // The size of a cache depends on --context, and so does the order of layers.
  other = resumed;
  other.insert(other.end(), {"--context", "32"});
  CHECK(says_that(place.refusal(other, 3), "is of a run with another model, other options"));
  const test::CliResult result = place.run(resumed);
  CHECK(result.exit_code == expected.exit_code);
  CHECK(result.out == expected.out);
  CHECK(says_that(result.err, "measurements of an earlier run\n"));
  CHECK(test::read_file(place / "out.json") == scales);
  CHECK_FALSE(fs::exists(place / "out.json.partial"));

  // A damaged measurement is made again.
  fs::remove(place / "out.json");
  REQUIRE(place.killed_after_measuring(resumed, "measured-0.json"));
  place.folder().write("out.json.partial/measured-0.json", "{}");
  const test::CliResult again = place.run(resumed);
  CHECK(says_that(again.err, "'out.json.partial/measured-0.json': changed since it was finished"));
  CHECK(again.out == expected.out);
}

TEST_CASE("cli fit: scales that no cache to choose from takes are refused") {
  const FitPlace place;
  REQUIRE(test::run_cli({"calibrate", "m", "--data", "data.jsonl", "--kv-cache-dtype", "nvfp4",
                         "-o", "n.json", "--device", "cpu"},
                        place.folder().path())
              .exit_code == 0);
  CHECK(says_that(place.refusal({"--max-kld", "1", "--for", "sglang", "--scales", "n.json"}, 2),
                  "no cache to choose from takes the scales of 'n.json'"));
  const test::CliResult result =
      place.run({"--max-kld", "10", "--scales", "n.json", "-o", "chosen.json"});
  CHECK(says_that(result.err, "left out: fp8_e4m3"));
}

TEST_CASE("cli fit: the serve command is the runtime's own") {
  const FitPlace place;
  const Strings flags = {"--max-kld", "10", "--kv-cache-dtype", "fp8", "-o", "s.json", "--for"};
  const auto served_by = [&](const std::string& runtime) {
    Strings all = flags;
    all.push_back(runtime);
    all.emplace_back("--force");
    return place.run(all).out;
  };
  CHECK(says_that(served_by("vllm"), "  vllm serve m-fp8 --kv-cache-dtype fp8\n"));
  CHECK(says_that(
      served_by("sglang"),
      "  python3 -m sglang.launch_server --model-path m-fp8 --kv-cache-dtype fp8_e4m3\n"));
  CHECK(says_that(served_by("tgi"), "--model-id m-fp8 --kv-cache-dtype fp8_e4m3fn\n"));
  CHECK(says_that(served_by("tensorrt-llm@pytorch"),
                  "Ask TensorRT-LLM PyTorch backend for a cache of fp8_e4m3."));
}

TEST_CASE("cli fit: a default cache that the model cannot have is left out") {
  const FitPlace place(8);
  const test::CliResult result = place.run({"--max-kld", "10"});
  CHECK(result.exit_code == 0);
  CHECK(says_that(result.err, "left out: nvfp4"));
  CHECK(says_that(result.out, "chosen"));
  CHECK(says_that(result.out, "vllm serve m"));
  CHECK(says_that(place.refusal({"--max-kld", "10", "--kv-cache-dtype", "nvfp4"}, 2), "nvfp4: "));
}

}  // namespace fp8kv
