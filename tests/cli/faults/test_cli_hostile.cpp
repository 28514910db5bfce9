// Hostile names from files, as they reach a terminal.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"
#include "core/numbers/dtype.h"
#include "formats/safetensors.h"
#include "json/json.h"
#include "support/models/tiny_checkpoint.h"
#include "support/program/run_cli.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

// Whether the text has no control characters but newlines, so it cannot move the cursor, colour or
// ring.
bool is_plain(const std::string& text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c == '\n' || static_cast<unsigned char>(c) >= 0x20; }) &&
         text.find('\x7f') == text.npos;
}

// Writes a model with such names for its scales, and one unknown tensor.
void write_hostile(const test::TempDir& folder, const std::string& name) {
  const test::TinyConfig config = test::tiny_config();
  test::write_tiny_checkpoint(folder / "model", config);
  const float one = 1;
  const ConstTensorView value{reinterpret_cast<const std::byte*>(&one), DType::f32, Shape{}};
  std::vector<TensorToWrite> tensors = {{name, value}};
  for (int64_t layer = 0; layer < config.n_layers; ++layer) {
    for (const char* which : {"k_scale", "v_scale"}) {
      tensors.push_back({cat(name, ".layers.", layer, ".self_attn.", which), value});
    }
  }
  folder.write("model/extra.safetensors", safetensors_bytes(tensors, {{"format", name}}));
  folder.write("model/model.safetensors.index.json",
               R"({"weight_map": {"model.norm.weight": "model.safetensors", )"
               R"("\u001b[2J\u0007\r\n../../etc/x\u007f": "extra.safetensors"}})");
}

}  // namespace

TEST_CASE("cli: names in a file reach the terminal escaped, whatever command prints them") {
  const test::TempDir folder;
  const std::string name = "\x1b[2J\x07\r\n../../etc/x\x7f";
  write_hostile(folder, name);
  folder.write("ids.jsonl", "{\"input_ids\": [3, 4, 5]}\n");
  folder.write("model/config\x1b[31m.txt", "a file whose name is hostile, too");
  folder.write("odd.json", R"({"model_type": "\u001b[2J", "kv_cache": {"dtype": "\u001b[2J"}})");
  folder.write("s.json", R"({"model_type": null, "kv_cache": {"dtype": "float8_e4m3fn",)"
                         R"( "scaling_factor": {"0": {"0": 1, "1": 0.5}}}})");
  const std::vector<std::vector<std::string>> commands = {
      {"inspect", "model"},
      {"verify", "model"},
      {"inspect", "model/extra.safetensors"},
      {"inspect", "odd.json"},
      {"extract", "model"},
      {"extract", "model", "--list"},
      {"extract", "model", "--list", "--json"},
      {"diff", "model", "s.json"},
      {"inject", "model", "-s", "s.json", "-o", "out", "--dry-run"},
      {"inject", "model", "-s", "s.json", "-o", "out", "--for", "vllm", "--replace"},
      {"plan", "model"},
      {"calibrate", "model", "--data", "ids.jsonl", "-o", "c.json"},
      {"eval", "model", "--data", "ids.jsonl", "--policy", "amax"},
      {"run", "model", "--prompt", "x"}};
  for (const std::vector<std::string>& command : commands) {
    CAPTURE(command[0]);
    const test::CliResult result = test::run_cli(command, folder.path());
    CAPTURE(result.err);
    CHECK(result.exit_code <= 5);
    CHECK((result.out + result.err).find("is not there") == std::string::npos);
    CHECK(is_plain(result.out));
    CHECK(is_plain(test::lasting_lines(result.err)));
  }
}

TEST_CASE("cli: JSON stays UTF-8 where a path is not") {
  const test::TempDir folder;
  const std::string model = "m\xff";
  test::write_tiny_checkpoint(folder / model, test::tiny_config());
  folder.write("ids\xff.jsonl", "{\"input_ids\": [3, 4, 5]}\n");
  const std::vector<std::vector<std::string>> commands = {
      {"calibrate", model, "--data", "ids\xff.jsonl", "-o", "s\xff.json"},
      {"inspect", model},
      {"inspect", "s\xff.json"},
      {"inspect", "s\xff.json", "--certificate"},
      {"inspect", model + "/model.safetensors"},
      {"extract", "s\xff.json", "-o", "again\xff.json"},
      {"extract", "s\xff.json", "--list"},
      {"diff", "s\xff.json", "again\xff.json"},
      {"inject", model, "-s", "s\xff.json", "-o", "out\xff"},
      {"verify", "out\xff"},
      {"eval", model, "--data", "ids\xff.jsonl", "--scales", "s\xff.json"},
      {"plan", model}};
  for (std::vector<std::string> command : commands) {
    CAPTURE(command[0]);
    command.push_back("--json");
    const test::CliResult result = test::run_cli(command, folder.path());
    CAPTURE(result.err);
    CHECK(result.exit_code == 0);
    // Json::parse refuses text that is not UTF-8.
    CHECK_NOTHROW(Json::parse(result.out, "stdout"));
  }
}

}  // namespace fp8kv
