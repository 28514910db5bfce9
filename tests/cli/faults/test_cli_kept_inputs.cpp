// No command overwrites its own input, however the path is spelt.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "support/models/tiny_checkpoint.h"
#include "support/program/run_cli.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;
using Contents = std::map<std::string, std::string>;

constexpr const char* kRecord = "{\"input_ids\": [1, 5, 9, 33, 7, 12, 60, 2]}\n";

// Two shards of a calibration with histograms, and a model in the layout of the hub's cache. The
// model's shard and the data have second names.
struct Workplace {
  Workplace() {
    test::write_tiny_checkpoint(temp / "made", test::tiny_config());
    fs::create_directories(temp / "hub/blobs");
    fs::create_directories(temp / "hub/snapshots");
    fs::rename(temp / "made", temp / "hub/snapshots/1");
    fs::rename(temp / "hub/snapshots/1/model.safetensors", temp / "hub/blobs/b0");
    fs::create_symlink("../../blobs/b0", temp / "hub/snapshots/1/model.safetensors");
    fs::create_directory_symlink("hub/snapshots/1", temp / "model");
    temp.write("data.jsonl", kRecord);
    temp.write("more.jsonl", kRecord);
    fs::create_hard_link(temp / "hub/blobs/b0", temp / "second-name");
    fs::create_symlink("data.jsonl", temp / "link.jsonl");
    fs::create_directory(temp / "sub");
    for (const std::string& part : Strings{"0", "1"}) {
      ok({"calibrate", "model", "--data", "data.jsonl", "more.jsonl", "--shard", part + "/2", "-o",
          part + ".json", "--histograms", part + ".hist", "-q"});
    }
    ok({"merge", "0.json", "1.json", "-o", "scales.json", "-q"});
    ok({"inject", "model", "-s", "scales.json", "-o", "carries", "--link", "copy", "-q"});
    fs::copy(temp / "scales.json", temp / "carries/scales.json");
  }

  test::CliResult run(const Strings& arguments, test::CliSetup setup = {}) const {
    setup.folder = temp.path();
    return test::run_cli(arguments, setup);
  }

  void ok(const Strings& arguments) const {
    const test::CliResult result = run(arguments);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
  }

  Contents contents() const {
    Contents found;
    for (const auto& entry : fs::recursive_directory_iterator(temp.path())) {
      found[fs::relative(entry.path(), temp.path()).string()] =
          entry.is_regular_file() ? test::read_file(entry.path()) : "";
    }
    return found;
  }

  test::TempDir temp;
};

struct Case {
  Strings command;
  std::string message;
};

void check_refused(const Workplace& at, const Case& wrong) {
  CAPTURE(wrong.message);
  const Contents before = at.contents();
  const test::CliResult result = at.run(wrong.command);
  CHECK(result.exit_code == 2);
  CHECK(result.out == "");
  const std::string line = result.err.substr(0, result.err.find('\n'));
  CHECK(line == "fp8kv: " + wrong.command[0] + ": " + wrong.message);
  CHECK(at.contents() == before);
}

TEST_CASE("cli: an output that is an input is refused, in every command that writes") {
  const Workplace at;
  const Strings calibrate = {"calibrate", "model", "--data", "data.jsonl", "--force"};
  const Strings eval = {"eval",     "model", "--data",         "data.jsonl", "--force",
                        "--policy", "amax",  "--calibrate-on", "more.jsonl"};
  const auto with = [](Strings command, const Strings& more) {
    command.insert(command.end(), more.begin(), more.end());
    return command;
  };
  const std::vector<Case> cases = {
      {with(calibrate, {"-o", "data.jsonl"}),
       "--out and --data are the same file: 'data.jsonl' and 'data.jsonl'"},
      {with(calibrate, {"-o", "sub/../model/model.safetensors"}),
       "--out and MODEL are the same file: 'sub/../model/model.safetensors' and "
       "'model/model.safetensors'"},
      {with(calibrate, {"-o", "hub/blobs/b0"}),
       "--out and MODEL are the same file: 'hub/blobs/b0' and 'model/model.safetensors'"},
      {with(calibrate, {"-o", "s.json", "--histograms", "second-name"}),
       "--histograms and MODEL are the same file: 'second-name' and 'model/model.safetensors'"},
      {with(eval, {"--report", "./data.jsonl"}),
       "--report and --data are the same file: './data.jsonl' and 'data.jsonl'"},
      {with(eval, {"--report", "link.jsonl"}),
       "--report and --data are the same file: 'link.jsonl' and 'data.jsonl'"},
      {with(eval, {"--junit", "more.jsonl"}),
       "--junit and --calibrate-on are the same file: 'more.jsonl' and 'more.jsonl'"},
      {with(eval, {"--junit", "model/config.json"}),
       "--junit and MODEL are the same file: 'model/config.json' and 'model/config.json'"},
      {{"eval", "model", "--data", "data.jsonl", "--scales", "scales.json", "--report",
        "scales.json", "--force"},
       "--report and --scales are the same file: 'scales.json' and 'scales.json'"},
      {with(calibrate, {"-o", "s.json", "--report", "data.jsonl"}),
       "--report and --data are the same file: 'data.jsonl' and 'data.jsonl'"},
      {with(calibrate, {"-o", "s.json", "--report", "sub/../s.json"}),
       "--out and --report are the same file: 's.json' and 'sub/../s.json'"},
      {{"inspect", "scales.json", "--report", "sub/../scales.json", "--force"},
       "--report and PATH are the same file: 'sub/../scales.json' and 'scales.json'"},
      {{"verify", "carries", "--junit", "carries/config.json", "--force"},
       "--junit and PATH are the same file: 'carries/config.json' and 'carries/config.json'"},
      {{"quantize", "model", "-o", "hub", "--force"},
       "--out 'hub': holds 'model', which is read for MODEL"},
      {{"quantize", "model", "-s", "carries/scales.json", "-o", "carries", "--force"},
       "--out 'carries': holds 'carries/scales.json', which is read for --scales"},
      {{"merge", "0.json", "1.json", "-o", "1.json", "--force"},
       "--out and FILE are the same file: '1.json' and '1.json'"},
      {{"merge", "0.json", "1.json", "--policy", "mse", "--histograms", "0.hist", "1.hist", "-o",
        "0.hist", "--force"},
       "--out and --histograms are the same file: '0.hist' and '0.hist'"},
      {{"extract", "scales.json", "-o", "sub/../scales.json", "--force"},
       "--out and CHECKPOINT are the same file: 'sub/../scales.json' and 'scales.json'"},
      {{"extract", "carries", "-o", "carries/config.json", "--force"},
       "--out and CHECKPOINT are the same file: 'carries/config.json' and 'carries/config.json'"},
      {{"inject", "model", "-s", "scales.json", "--for", "json", "-o", "scales.json", "--force"},
       "--out and --scales are the same file: 'scales.json' and 'scales.json'"},
      {{"inject", "model", "-s", "carries/scales.json", "-o", "carries", "--force"},
       "--out 'carries': holds 'carries/scales.json', which is read for --scales"},
      {{"inject", "model", "-s", "carries/", "-o", "carries", "--force"},
       "--out 'carries': holds 'carries/', which is read for --scales"},
      {{"inject", "model", "-s", "scales.json", "-o", "hub", "--force"},
       "--out 'hub': holds 'model', which is read for MODEL"},
  };
  for (const Case& wrong : cases) check_refused(at, wrong);
}

TEST_CASE("cli: the state of --resume is no file of the model or of the data") {
  const Workplace at;
  at.temp.write("s.json.partial", kRecord);
  check_refused(at, {{"calibrate", "model", "--data", "s.json.partial", "-o", "s.json", "--resume"},
                     "--resume and --data are the same file: 's.json.partial' and "
                     "'s.json.partial'"});
  fs::create_hard_link(at.temp / "hub/blobs/b0", at.temp / "model/t.json.partial");
  const test::CliResult linked =
      at.run({"calibrate", "model", "--data", "data.jsonl", "-o", "model/t.json", "--resume"});
  CHECK(linked.exit_code == 2);
  CHECK(linked.err.starts_with("fp8kv: calibrate: --resume and MODEL are the same file: "));
}

TEST_CASE("cli: standard input that is an output is refused") {
  const Workplace at;
  const test::CliResult result =
      at.run({"calibrate", "model", "--data", "-", "-o", "data.jsonl", "--force"},
             {.input_file = at.temp / "data.jsonl"});
  CHECK(result.exit_code == 2);
  CHECK(
      result.err.starts_with("fp8kv: calibrate: --out and --data are the same file: "
                             "'data.jsonl' and standard input\n"));
  CHECK(test::read_file(at.temp / "data.jsonl") == kRecord);
}

TEST_CASE("cli: outputs in a model's folder that replace nothing of it are written") {
  const Workplace at;
  const Strings command = {"calibrate",  "model", "--data",
                           "data.jsonl", "-o",    "model/kv_cache_scales.json",
                           "--force",    "-q"};
  at.ok(command);
  const std::string first = test::read_file(at.temp / "model/kv_cache_scales.json");
  at.ok(command);  // replaces its own output
  CHECK(test::read_file(at.temp / "model/kv_cache_scales.json") == first);
  at.ok({"calibrate", "model", "--data", "data.jsonl", "-o", "model/new.json", "--resume", "-q"});
  CHECK(fs::exists(at.temp / "model/new.json"));
}

}  // namespace
}  // namespace fp8kv
