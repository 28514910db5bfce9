// Kills calibrations and continues them, as processes.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "json/json.h"
#include "support/places.h"
#include "support/program/run_cli.h"
#include "support/says.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

Strings calibrate_model(const std::string& model, const Strings& more = {},
                        const std::string& out = "s.json") {
  const fs::path datasets = test::source_dir() / "datasets";
  Strings arguments = {"calibrate", model, "--data",   (datasets / "calibration.txt").string(),
                       "--seq-len", "32",  "--device", "cpu",
                       "--threads", "1",   "--out",    out,
                       "--resume"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  if (std::find(more.begin(), more.end(), "--samples") == more.end()) {
    arguments.insert(arguments.end(), {"--samples", "4"});
  }
  return arguments;
}

Strings calibrate(const Strings& more = {}, const std::string& out = "s.json") {
  return calibrate_model((test::source_dir() / "datasets" / "demo").string(), more, out);
}

bool can_kill() {
  if (test::fault_shim().empty()) test::skip("a sanitizer's runtime must be loaded first");
  return !test::fault_shim().empty();
}

using test::says;

std::set<std::string> files_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

// Removes temporaries of killed runs. Each one costs the next run one more file operation.
void remove_leftovers(const fs::path& folder) {
  for (const std::string& name : files_in(folder)) {
    if (name.find(".fp8kv-tmp-") != name.npos) fs::remove(folder / name);
  }
}

std::string bytes_of_whole_run(const Strings& more = {}) {
  const test::TempDir folder;
  CHECK(test::run_cli(calibrate(more), folder.path()).exit_code == 0);
  CHECK(files_in(folder.path()) == std::set<std::string>{"s.json"});
  return test::read_file(folder / "s.json");
}

// Runs a command with the fault shim, which kills it when this variable says.
test::CliResult run_killed(const Strings& command, const fs::path& folder,
                           const std::string& when) {
  return test::run_cli(command, {.folder = folder,
                                 .environment = {cat("LD_PRELOAD=", test::fault_shim()),
                                                 "FP8KV_FAULT_ERRNO=0", when}});
}

// Kills a run as soon as it has left the state of its first layer.
void leave_state(const Strings& command, const test::TempDir& folder) {
  const test::CliResult killed =
      run_killed(command, folder.path(), "FP8KV_FAULT_ONCE=s.json.partial");
  REQUIRE(killed.exit_code == 128 + SIGKILL);
  REQUIRE(fs::exists(folder / "s.json.partial"));
  remove_leftovers(folder.path());
}

}  // namespace

TEST_CASE("cli resume: killed at any file operation, the next run gives the same bytes") {
  if (!can_kill()) return;
  const Strings automatic = {"--samples", "auto"};
  for (const Strings& more :
       {Strings{}, Strings{"--shard", "1/2", "--granularity", "head"}, automatic}) {
    const std::string expected = bytes_of_whole_run(more);
    int gone_on = 0;
    // Before the first state there is little to lose, so it kills at every seventh operation.
    // Rounds have thirty similar states, so there it kills at every hundredth, later at every 41st.
    const bool rounds = more == automatic;
    for (int operation = 1;; operation += gone_on == 0 ? (rounds ? 101 : 7) : (rounds ? 41 : 1)) {
      CAPTURE(operation);
      const test::TempDir folder;
      const test::CliResult killed =
          run_killed(calibrate(more), folder.path(), cat("FP8KV_FAULT_AT=", operation));
      if (killed.exit_code == 0) break;
      CHECK(killed.exit_code == 128 + SIGKILL);
      gone_on += fs::exists(folder / "s.json.partial") ? 1 : 0;
      Strings again = more;
      if (fs::exists(folder / "s.json")) again.push_back("--force");
      const test::CliResult result = test::run_cli(calibrate(again), folder.path());
      CHECK(result.exit_code == 0);
      CHECK(test::read_file(folder / "s.json") == expected);
      remove_leftovers(folder.path());
      CHECK(files_in(folder.path()) == std::set<std::string>{"s.json"});
    }
    CHECK(gone_on >= 5);
  }
}

TEST_CASE("cli resume: losses go on too, and a state without them is refused") {
  if (!can_kill()) return;
  const Strings loss = {"--policy", "loss"};
  const std::string expected = bytes_of_whole_run(loss);
  const test::TempDir folder;
  leave_state(calibrate(loss), folder);
  const test::CliResult other = test::run_cli(calibrate(), folder.path());
  CHECK(other.exit_code == 3);
  CHECK(says(other.err, "is the state of a run with another losses ('yes', this run has '')\n"));
  CHECK(test::run_cli(calibrate(loss), folder.path()).exit_code == 0);
  CHECK(test::read_file(folder / "s.json") == expected);
  leave_state(calibrate({"--force"}), folder);
  const test::CliResult plain =
      test::run_cli(calibrate({"--policy", "loss", "--force"}), folder.path());
  CHECK(says(plain.err,
             "is the state of a run with another measurement of losses (--policy) ('', this run "
             "has 'yes')\n"));
}

TEST_CASE("cli resume: a full disk is named, and the state before is kept") {
  if (!can_kill()) return;
  const test::TempDir folder;
  leave_state(calibrate(), folder);
  const std::string state = test::read_file(folder / "s.json.partial");
  const test::CliResult result =
      test::run_cli(calibrate(), {.folder = folder.path(), .largest_file = 4096});
  CHECK(result.exit_code == 5);
  CHECK(says(result.err, "fp8kv: calibrate: 's.json.partial': cannot write: File too large"));
  CHECK(test::read_file(folder / "s.json.partial") == state);
  CHECK(files_in(folder.path()) == std::set<std::string>{"s.json.partial"});
}

TEST_CASE("cli resume: says where it goes on from") {
  if (!can_kill()) return;
  const test::TempDir folder;
  leave_state(calibrate(), folder);
  const test::CliResult result = test::run_cli(calibrate(), folder.path());
  CHECK(says(result.err, "going on from 's.json.partial': 1 of 6 layers done\n"));
}

TEST_CASE("cli resume: the state of another run is refused, naming what differs") {
  if (!can_kill()) return;
  const test::TempDir folder;
  leave_state(calibrate(), folder);
  const std::string state = test::read_file(folder / "s.json.partial");
  const test::CliResult result = test::run_cli(calibrate({"--shard", "0/2"}), folder.path());
  CHECK(result.exit_code == 3);
  const std::string said = test::without_hex_after(test::lasting_lines(result.err), "'");
  CHECK(says(said,
             "fp8kv: calibrate: 's.json.partial': is the state of a run with another text: "
             "other data, or other windows or shards of it ('', this run has '')\n"
             "help: to start over, remove it: rm s.json.partial\n"));
  CHECK(test::read_file(folder / "s.json.partial") == state);
}

TEST_CASE(
    "cli resume: a state of rounds is not gone on with by a run without, nor by other rounds") {
  if (!can_kill()) return;
  const test::TempDir folder;
  leave_state(calibrate({"--samples", "auto"}), folder);
  const auto refusal = [&](const Strings& more) {
    const test::CliResult result = test::run_cli(calibrate(more), folder.path());
    CHECK(result.exit_code == 3);
    return result.err.substr(std::min(result.err.find("fp8kv: "), result.err.size()));
  };
  const std::string help = "help: to start over, remove it: rm s.json.partial\n";
  const std::string said =
      "fp8kv: calibrate: 's.json.partial': is the state of a run with another way of choosing "
      "windows (--samples) ('until layers settle', this run has '";
  CHECK(refusal({"--samples", "auto", "--policy", "head"}) ==
        said + "until heads settle')\n" + help);
  CHECK(refusal({"--samples", "512"}) == said + "all')\n" + help);
}

TEST_CASE("cli resume: the state of a model with another config or other weights is refused") {
  if (!can_kill()) return;
  const test::TempDir folder;
  fs::copy(test::source_dir() / "datasets" / "demo", folder / "demo");
  const std::string config = test::read_file(folder / "demo/config.json");
  const Strings command = calibrate_model("demo");
  leave_state(command, folder);
  const std::string state = test::read_file(folder / "s.json.partial");
  const auto refusal = [&] {
    const test::CliResult result = test::run_cli(command, folder.path());
    CHECK(result.exit_code == 3);
    CHECK(test::read_file(folder / "s.json.partial") == state);
    CHECK(!fs::exists(folder / "s.json"));
    return result.err.substr(std::min(result.err.find("fp8kv: "), result.err.size()));
  };
  const std::string help = "help: to start over, remove it: rm s.json.partial\n";
  const std::string said =
      "fp8kv: calibrate: 's.json.partial': is the state of a run with another ";
  folder.write("demo/config.json", json_with_member(config, "rope_theta", "20000"));
  CHECK(refusal() ==
        said + "rope_theta in the model's config ('10000', this run has '20000')\n" + help);
  folder.write("demo/config.json", json_with_member(config, "rms_norm_eps", "0.001"));
  CHECK(refusal().starts_with(said + "rms_norm_eps in the model's config ('"));
  folder.write("demo/config.json", config);
  std::fstream(folder / "demo/model.safetensors", std::ios::in | std::ios::out | std::ios::binary)
      .seekp(1'000'000)  // in the weights of an MLP
      .put('\1');
  CHECK(refusal().starts_with(said + "file of weights 'model.safetensors' ('"));
}

TEST_CASE("cli resume: a file that is no state is refused and left alone") {
  const test::TempDir folder;
  folder.write("s.json.partial", std::string(8, '\0'));
  const test::CliResult result = test::run_cli(calibrate(), folder.path());
  CHECK(result.exit_code == 3);
  CHECK(says(result.err, "fp8kv: calibrate: 's.json.partial': "));
  CHECK(test::read_file(folder / "s.json.partial") == std::string(8, '\0'));
}

TEST_CASE("cli resume: standard output has no place for the state") {
  const test::TempDir folder;
  const test::CliResult result = test::run_cli(calibrate({}, "-"), folder.path());
  CHECK(result.exit_code == 2);
  CHECK(result.err ==
        "fp8kv: calibrate: --resume: needs a file beside which it keeps its state, and --out is "
        "standard output\nhelp: name a file with --out\n");
}

TEST_CASE("cli calibrate: --max-memory is refused on the CPU, saying why") {
  const test::TempDir folder;
  const test::CliResult result = test::run_cli(calibrate({"--max-memory", "1GiB"}), folder.path());
  CHECK(result.exit_code == 2);
  CHECK(says(result.err,
             "fp8kv: calibrate: --max-memory 1.00 GiB: bounds the memory of a device, and this "
             "runs on the CPU (cpu: "));
  CHECK(says(result.err, "help: leave it out, or take fewer windows\n"));
  CHECK(files_in(folder.path()).empty());
}

}  // namespace fp8kv
