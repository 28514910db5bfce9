#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "json/json.h"
#include "support/models/tiny_checkpoint.h"
#include "support/program/run_cli.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

// Runs commands in a folder of its own. Every command must succeed.
struct Shell {
  test::CliResult run(const Arguments& arguments, const std::string& input = "") const {
    const test::CliResult result =
        test::run_cli(arguments, {.folder = temp.path(), .input = input});
    INFO(result.err);
    CHECK(result.exit_code == 0);
    return result;
  }
  Json json(const std::string& name) const { return Json::read(temp / name); }
  std::string text(const std::string& name) const { return test::read_file(temp / name); }

  test::TempDir temp;
};

std::vector<double> numbers(const Json& array) {
  std::vector<double> out;
  for (size_t i = 0; i < array.size(); ++i) out.push_back(array[i].as_double());
  return out;
}

double largest(const Json& array) {
  const std::vector<double> values = numbers(array);
  return *std::max_element(values.begin(), values.end());
}

std::string four_digits(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.4g", value);
  return buffer;
}

// The calibration table for a scale file, with one blank between cells.
std::string table_of(const Json& file) {
  const Json ours = file.at("fp8kv");
  const Json amax = ours.at("amax");
  std::string table = "layer K amax K scale V amax V scale Q amax";
  for (size_t layer = 0; layer < ours.at("k_scale").size(); ++layer) {
    table += cat(" ", layer);
    for (const Json& part :
         {amax.at("k"), ours.at("k_scale"), amax.at("v"), ours.at("v_scale"), amax.at("q")}) {
      table += " " + four_digits(largest(part[layer]));
    }
  }
  return table;
}

// The first table of the output, with one blank between cells.
std::string first_table(const std::string& text) {
  std::istringstream in(text.substr(0, text.find("\n\n")));
  std::string cells;
  for (std::string word; in >> word;) cells += (cells.empty() ? "" : " ") + word;
  return cells;
}

// Checks that scale = f32(amax) / 448. The part that vLLM reads has the larger one of K and V.
void check_scales_follow_amax(const Json& file) {
  const Json ours = file.at("fp8kv");
  const Json fused = file.at("kv_cache").at("scaling_factor").at("0");
  REQUIRE(fused.size() == ours.at("k_scale").size());
  for (size_t layer = 0; layer < fused.size(); ++layer) {
    float both = 0;
    for (const char* part : {"k", "v"}) {
      const float amax = static_cast<float>(largest(ours.at("amax").at(part)[layer]));
      const float expected = amax / 448;
      CHECK(numbers(ours.at(cat(part, "_scale"))[layer]) == std::vector<double>{expected});
      both = std::max(both, expected);
    }
    CHECK(fused.at(cat(layer)).as_double() == both);
  }
}

// Goes from a model to a model with scales and back, and checks each result.
void check_pipeline(const Shell& shell, const fs::path& model, const fs::path& data) {
  const Arguments calibrate = {"calibrate", model.string(), "--data", data.string(), "--samples",
                               "6",         "--seq-len",    "96",     "--threads"};
  const auto with = [](Arguments arguments, const Arguments& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  const test::CliResult made = shell.run(with(calibrate, {"1", "-o", "one.json", "--table"}));
  shell.run(with(calibrate, {"3", "-o", "three.json"}));
  CHECK(shell.text("one.json") == shell.text("three.json"));
  CHECK(first_table(made.out) == table_of(shell.json("one.json")));
  check_scales_follow_amax(shell.json("one.json"));

  shell.run({"inject", model.string(), "--scales", "one.json", "-o", "injected"});
  CHECK(shell.json("injected/config.json").at("kv_cache_torch_dtype").as_string() ==
        "float8_e4m3fn");
  const test::CliResult inspected = shell.run({"inspect", "injected"});
  CHECK(inspected.out.find("\nKV scales         compressed-tensors, for float8_e4m3fn, ") !=
        std::string::npos);

  shell.run({"extract", "injected", "-o", "extracted.json"});
  const Json before = shell.json("one.json");
  const Json after = shell.json("extracted.json");
  for (const char* part : {"k_scale", "v_scale"}) {
    CHECK(JsonWriter().value(after.at("fp8kv").at(part)).text() ==
          JsonWriter().value(before.at("fp8kv").at(part)).text());
  }
  CHECK(JsonWriter().value(after.at("kv_cache")).text() ==
        JsonWriter().value(before.at("kv_cache")).text());
}

TEST_CASE("cli: the demo model goes through calibrate, inject, inspect, extract and run") {
  const Shell shell;
  const fs::path datasets = test::source_dir() / "datasets";
  check_pipeline(shell, datasets / "demo", datasets / "calibration.txt");
  const Arguments prompt = {"--prompt", "London is the capital of", "-n", "24", "-q"};
  Arguments plain = {"run", (datasets / "demo").string()};
  plain.insert(plain.end(), prompt.begin(), prompt.end());
  Arguments injected = {"run", "injected"};
  injected.insert(injected.end(), prompt.begin(), prompt.end());
  CHECK(shell.run(injected).out == shell.run(plain).out);
}

TEST_CASE("cli: small models of every dtype and sharding go through the same") {
  for (const char* name :
       {"stories260K-hf-f32", "stories260K-hf-bf16-sharded", "stories260K-hf-f16-untied"}) {
    CAPTURE(std::string(name));
    const auto model = test::shared_data(cat("models/", name));
    const auto data = test::shared_data("text/tinystories_train_head.txt");
    if (!model || !data) return;
    const Shell shell;
    check_pipeline(shell, *model, *data);
    const std::string start = "Once upon a time, there was a little girl named";
    const std::string text =
        shell.run({"run", "injected", "--prompt", "Once upon a time", "-n", "16", "-q"}).out;
    CHECK(text.starts_with(start));
  }
}

TEST_CASE("cli: amax agrees with a float64 forward pass") {
  const auto model = test::shared_data("models/stories260K-hf-f32");
  const auto reference = test::shared_data("reference/stories260K-hf-f32.tinyshakespeare.json");
  if (!model || !reference) return;
  const Shell shell;
  const Json expected = Json::read(*reference);
  std::string windows;
  for (size_t i = 0; i < expected.at("window_ids").size(); ++i) {
    JsonWriter record(JsonWriter::Layout::one_line);
    record.begin_object().member("input_ids", expected.at("window_ids")[i]);
    windows += record.end_object().text() + "\n";
  }
  shell.temp.write("ids.jsonl", windows);
  shell.run(
      {"calibrate", model->string(), "--data", "ids.jsonl", "--samples", "16", "-o", "s.json"});
  const Json ours = shell.json("s.json").at("fp8kv");
  for (const auto& [part, name] : {std::pair("k", "k_post_rope"), std::pair("v", "v")}) {
    const Json heads = expected.at("amax_per_head").at(name);
    for (size_t layer = 0; layer < heads.size(); ++layer) {
      const std::vector<double> want = numbers(heads[layer]);
      const std::vector<double> got = numbers(ours.at("amax").at(part)[layer]);
      REQUIRE(got.size() == want.size());
      for (size_t head = 0; head < want.size(); ++head) {
        CAPTURE(layer);
        CAPTURE(head);
        // f32 against double; calib/test_collect.cpp derives the tolerance.
        CHECK(std::abs(got[head] - want[head]) <= 1e-5 * want[head]);
      }
    }
  }
}

// A tiny model with scales that print the same everywhere.
struct Injected : Shell {
  Injected() {
    test::write_tiny_checkpoint(temp / "model", test::tiny_config());
    temp.write("scales.json", R"({"model_type": "llama", "kv_cache": {"dtype": "float8_e4m3fn",
      "scaling_factor": {"0": {"0": 0.5, "1": 0.0009765625}}}})");
  }
};

TEST_CASE("cli: inject lists each file and how it came") {
  const Injected shell;
  const test::CliResult result = shell.run({"inject", "model", "-s", "scales.json", "-o", "out",
                                            "--for", "tgi", "--link", "copy", "--all"});
  CHECK(
      result.out.starts_with("file                           bytes  how\n"
                             "config.json                      577  written\n"
                             "model-kv-scales.safetensors      576  written\n"
                             "model.safetensors             80,560  copied\n"
                             "model.safetensors.index.json   1,839  written\n"
                             "\n"
                             "runtime "));
  CHECK(result.out.find("\nTGI           2.4 and newer      loads    with --kv-cache-dtype "
                        "fp8_e4m3fn: k_scale and v_scale as F32\n") != result.out.npos);
  CHECK(result.err ==
        "note: transformers prefers model.safetensors and so ignores the index and the scales: "
        "there the model works as before\n"
        "wrote 81.6 KiB and made 'out'\n");
  CHECK(shell.text("out/model.safetensors") == shell.text("model/model.safetensors"));
}

TEST_CASE("cli: a dry run says the same and writes nothing") {
  const Injected shell;
  const test::CliResult planned = shell.run({"inject", "model", "-s", "scales.json", "-o", "out",
                                             "--for", "tgi", "--link", "copy", "--dry-run"});
  CHECK_FALSE(fs::exists(shell.temp / "out"));
  const test::CliResult done = shell.run(
      {"inject", "model", "-s", "scales.json", "-o", "out", "--for", "tgi", "--link", "copy"});
  CHECK(planned.out == done.out);
  CHECK(planned.err.ends_with("\nwould write 81.6 KiB to make 'out'\n"));
}

TEST_CASE("cli: diff is silent about bits that agree and exits 1 where they do not") {
  const Injected shell;
  shell.run({"inject", "model", "-s", "scales.json", "-o", "out", "--for", "tgi"});
  const test::CliResult same = shell.run({"diff", "scales.json", "out"});
  CHECK(same.exit_code == 0);
  CHECK(same.out.ends_with("\nno layer of 2 differs\n"));
  shell.temp.write("doubled.json", R"({"model_type": "llama", "kv_cache": {"dtype": "float8_e4m3fn",
      "scaling_factor": {"0": {"0": 1.0, "1": 0.001953125}}}})");
  const test::CliResult doubled = test::run_cli({"diff", "out", "doubled.json"}, shell.temp.path());
  CHECK(doubled.exit_code == 1);
  CHECK(
      doubled.out.find("\n2 of 2 layers differ; farthest is layer 0: B/A is 2 in K and 2 in V\n") !=
      doubled.out.npos);
}

TEST_CASE("cli: inspect shows what a model is, its scales and what its cache costs") {
  const Injected shell;
  shell.run({"inject", "model", "-s", "scales.json", "-o", "out", "--for", "tgi"});
  const test::CliResult result = shell.run({"inspect", "out"});
  CHECK(result.err == "");
  CHECK(result.out ==
        "folder            out\n"
        "architecture      LlamaForCausalLM (llama), supported\n"
        "layers            2; 4 heads, 2 KV heads of 8\n"
        "context           128 tokens\n"
        "shards            2 files, 79.2 KiB\n"
        "  F32             27 tensors, 76.6 KiB\n"
        "fingerprint       "
        "kv-v2:714dbe1bb897da267dd82390a8f27e6f9ea1e9713186d075d230880cd3acd074\n"
        "KV scales         kv_scale and k_scale/v_scale, for float8_e4m3fn, 6 tensors\n"
        "\n"
        "layer       K scale       V scale\n"
        "    0           0.5           0.5\n"
        "    1  0.0009765625  0.0009765625\n"
        "\n"
        "KV cache             bytes a token  tokens in 1 GiB\n"
        "float32                        256        4,194,304\n"
        "float16                        128        8,388,608\n"
        "bfloat16                       128        8,388,608\n"
        "fp8_e4m3                        64       16,777,216\n"
        "fp8_e4m3fnuz                    64       16,777,216\n"
        "fp8_e5m2                        64       16,777,216\n"
        "int8_per_token_head             96       11,184,810\n"
        "fp8_per_token_head              96       11,184,810\n"
        "turboquant_k8v4                 64       16,777,216\n"
        "int4_per_token_head             64       16,777,216\n");
}

TEST_CASE("cli: every --json result is JSON with a schema id") {
  const Injected shell;
  shell.temp.write("ids.jsonl", "{\"input_ids\": [1, 2, 3]}\n");
  const struct {
    Arguments arguments;
    std::string schema;
  } cases[] = {
      {{"calibrate", "model", "--data", "ids.jsonl", "-o", "c.json"}, "fp8kv.calibrate/1"},
      {{"inject", "model", "-s", "c.json", "-o", "out", "--for", "tgi"}, "fp8kv.inject/1"},
      {{"extract", "out", "-o", "e.json"}, "fp8kv.extract/1"},
      {{"inspect", "out"}, "fp8kv.inspect/1"},
      {{"inspect", "out/model.safetensors"}, "fp8kv.inspect/1"},
      {{"inspect", "c.json"}, "fp8kv.inspect/1"},
  };
  for (const auto& each : cases) {
    CAPTURE(each.schema);
    Arguments arguments = each.arguments;
    arguments.push_back("--json");
    const std::string out = shell.run(arguments).out;
    CHECK(Json::parse(out, "stdout").at("schema").as_string() == each.schema);
    CHECK(out.ends_with("}\n"));
  }
}

TEST_CASE("cli: data comes from files and standard input, and the scales go to standard output") {
  const Injected shell;
  const std::string first = "{\"input_ids\": [1, 2, 3]}\n";
  const std::string second = "{\"input_ids\": [9, 8, 7, 6]}\n";
  shell.temp.write("a b/first file.jsonl", first);
  const test::CliResult result =
      shell.run({"calibrate", "model/", "--data", "a b/first file.jsonl", "-", "-o", "-"}, second);
  CHECK(test::lasting_lines(result.err) ==
        "windows of 128 tokens: the model's whole context\n"
        "'a b/first file.jsonl': JSON lines with 'input_ids', took 1 document, 1 window, 3 tokens\n"
        "standard input: JSON lines with 'input_ids', took 1 document, 1 window, 4 tokens\n"
        "warning: 'a b/first file.jsonl' and standard input give 2 windows, where up to 512 are "
        "taken "
        "by default\n");
  const Json counted = Json::parse(result.out, "stdout").at("fp8kv").at("counted");
  CHECK(counted.at("tokens").as_int() == 7);
  CHECK(counted.at("data").size() == 2);
}

TEST_CASE("cli: a snapshot of links into a blob store becomes a folder of files") {
  const Injected shell;
  fs::create_directories(shell.temp / "hub/blobs");
  fs::create_directories(shell.temp / "hub/snapshots/abc");
  for (const char* name : {"config.json", "model.safetensors"}) {
    fs::rename(shell.temp / "model" / name, shell.temp / "hub/blobs" / name);
    fs::create_symlink(fs::path("../../blobs") / name, shell.temp / "hub/snapshots/abc" / name);
  }
  shell.run({"inject", "hub/snapshots/abc/", "-s", "scales.json", "-o", "out", "--for", "tgi"});
  CHECK(fs::symlink_status(shell.temp / "out/model.safetensors").type() == fs::file_type::regular);
  CHECK(shell.text("out/model.safetensors") == shell.text("hub/blobs/model.safetensors"));
  CHECK(shell.run({"extract", "out", "-q"}).out.starts_with("{"));
}

TEST_CASE("cli: a promise of an FP8 cache without scales stops run, and says the ways out") {
  const Injected shell;
  shell.run({"inject", "model", "-s", "scales.json", "-o", "out", "--for", "tgi"});
  fs::copy_file(shell.temp / "out/config.json", shell.temp / "model/config.json",
                fs::copy_options::overwrite_existing);
  const test::CliResult result =
      test::run_cli({"run", "model", "--prompt", "a"}, {.folder = shell.temp.path()});
  CHECK(result.exit_code == 3);
  CHECK(result.err ==
        "fp8kv: run: 'model/config.json': kv_cache_torch_dtype is 'float8_e4m3fn', but there are "
        "no KV scales in 'model'\n"
        "help: make some with 'fp8kv calibrate' and pass --scales FILE, or run with --unit-scales "
        "to have every scale 1\n");
}

}  // namespace
}  // namespace fp8kv
