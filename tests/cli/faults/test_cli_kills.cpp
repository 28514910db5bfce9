// Kills every command that writes files before each of its file operations. Outputs are whole or
// missing, inputs are unchanged, and the next run works and names the leftovers.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "support/models/tiny_checkpoint.h"
#include "support/places.h"
#include "support/program/run_cli.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;
using Contents = std::map<std::string, std::string>;

struct Case {
  Strings command;
  Strings outputs;           // below the workplace: files, or folders
  bool replaces = false;     // outputs exist before, and --force is given
  bool keeps_state = false;  // OUT.partial may stay, and the next run continues from it
};

// Contents by name. The text of a folder's record is left out, because it holds times of hard
// links.
Contents contents_of(const fs::path& path) {
  Contents found;
  if (fs::is_regular_file(path)) found[""] = test::read_file(path);
  if (!fs::is_directory(path)) return found;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    const bool has_text = entry.is_regular_file() && entry.path().filename() != "fp8kv-files.txt";
    found[fs::relative(entry.path(), path).string()] =
        has_text ? test::read_file(entry.path()) : "";
  }
  return found;
}

// Inputs are in "in", outputs in "out".
class Place {
 public:
  Place() {
    test::write_tiny_checkpoint(temp_ / "in/model", test::tiny_config(), {.n_shards = 2});
    temp_.write("in/data.jsonl",
                "{\"input_ids\": [1, 5, 9, 33, 7, 12, 60, 2]}\n"
                "{\"input_ids\": [2, 6, 1, 44]}\n");
    fs::create_directory(temp_ / "out");
    for (const std::string& part : Strings{"0", "1"}) {
      ok({"calibrate", "in/model", "--data", "in/data.jsonl", "--shard", part + "/2", "-o",
          "in/" + part + ".json", "-q", "--threads", "1"});
    }
    ok({"merge", "in/0.json", "in/1.json", "-o", "in/scales.json", "-q"});
    ok({"inject", "in/model", "-s", "in/scales.json", "-o", "in/served", "--link", "copy", "-q"});
    inputs_ = contents_of(temp_ / "in");
  }

  void kill_everywhere(const Case& of) {
    clear();
    ok(of.command);
    const Contents whole = contents_of(temp_ / "out");
    const int operations = count_operations(of);
    CAPTURE(of.command[0]);
    CAPTURE(operations);
    REQUIRE(operations >= 8);  // reading one file and making another takes as many
    for (int operation = 1; operation <= operations; ++operation) {
      CAPTURE(operation);
      prepare(of);
      const Contents before = contents_of(temp_ / "out");
      const test::CliResult killed = run(of.command, {cat("FP8KV_FAULT_AT=", operation)});
      REQUIRE(killed.exit_code == 128 + SIGKILL);
      check_outputs(of, before, whole);
      CHECK(contents_of(temp_ / "in") == inputs_);
      Strings again = of.command;
      std::erase(again, "-q");
      again.push_back("--force");
      const test::CliResult next = test::run_cli(again, temp_.path());
      INFO(next.err);
      CHECK(next.exit_code == 0);
      remove_leftovers(next.err);
      CHECK(contents_of(temp_ / "out") == whole);
      CHECK(contents_of(temp_ / "in") == inputs_);
    }
  }

 private:
  // Removes the temporaries, and checks that the run named them.
  void remove_leftovers(const std::string& said) const {
    std::vector<fs::path> left;
    for (const auto& entry : fs::directory_iterator(temp_ / "out")) {
      const std::string name = "out/" + entry.path().filename().string();
      if (name.find(".fp8kv-tmp-") == name.npos) continue;
      CHECK(said.find(cat("to remove it: rm -r ", name, "\n")) != said.npos);
      left.push_back(entry.path());
    }
    for (const fs::path& path : left) fs::remove_all(path);
  }
  test::CliResult run(const Strings& command, Strings environment) const {
    environment.push_back(cat("LD_PRELOAD=", test::fault_shim()));
    environment.push_back("FP8KV_FAULT_ERRNO=0");  // a kill
    return test::run_cli(command, {.folder = temp_.path(), .environment = environment});
  }
  void ok(const Strings& command) const {
    const test::CliResult result = test::run_cli(command, temp_.path());
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
  }
  void clear() const {
    fs::remove_all(temp_ / "out");
    fs::create_directory(temp_ / "out");
  }
  // Prepares the outputs that a run with --force replaces: a folder made by inject, or any file.
  void prepare(const Case& of) const {
    clear();
    if (!of.replaces) return;
    for (const std::string& output : of.outputs) {
      if (fs::path(output).extension().empty()) {
        ok({"inject", "in/model", "-s", "in/0.json", "-o", output, "-q"});
      } else {
        temp_.write(output, "before");
      }
    }
  }
  int count_operations(const Case& of) const {
    prepare(of);
    const fs::path log = temp_ / "count";
    const test::CliResult result = run(of.command, {"FP8KV_FAULT_LOG=" + log.string()});
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return std::atoi(test::read_file(log).c_str());
  }

  // Checks that each output is unchanged or whole, and that all other files are temporaries.
  void check_outputs(const Case& of, const Contents& before, const Contents& whole) const {
    const auto below = [](const Contents& all, const std::string& name) {
      Contents found;
      for (const auto& [path, bytes] : all) {
        if (path == name || path.starts_with(name + "/")) found[path] = bytes;
      }
      return found;
    };
    const Contents now = contents_of(temp_ / "out");
    for (const std::string& output : of.outputs) {
      const std::string name = fs::path(output).filename().string();
      const Contents here = below(now, name);
      CHECK((here == below(before, name) || here == below(whole, name)));
    }
    for (const auto& [path, bytes] : now) {
      const std::string top = fs::path(path).begin()->string();
      const bool is_output = std::any_of(of.outputs.begin(), of.outputs.end(), [&](const auto& o) {
        return fs::path(o).filename() == top;
      });
      const bool is_state = of.keeps_state && top.ends_with(".partial");
      CAPTURE(top);
      CHECK((is_output || is_state || top.find(".fp8kv-tmp-") != top.npos));
    }
  }

  test::TempDir temp_;
  Contents inputs_;
};

void kill_everywhere(const Case& of) {
  if (test::fault_shim().empty()) {
    test::skip("sanitizers must be loaded before the shim");
    return;
  }
  Place().kill_everywhere(of);
}

const Strings kCalibrate = {
    "calibrate",    "in/model",   "--data", "in/data.jsonl", "-o", "out/s.json",
    "--histograms", "out/h.hist", "-q",     "--threads",     "1",  "--device",
    "cpu"};

Strings with(Strings command, const Strings& more) {
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

}  // namespace

TEST_CASE("cli kills: calibrate with histograms, into new files") {
  kill_everywhere({.command = kCalibrate, .outputs = {"out/s.json", "out/h.hist"}});
}

TEST_CASE("cli kills: calibrate with its state, in place of other files") {
  kill_everywhere({.command = with(kCalibrate, {"--resume", "--force"}),
                   .outputs = {"out/s.json", "out/h.hist"},
                   .replaces = true,
                   .keeps_state = true});
}

TEST_CASE("cli kills: eval with a page and an outcome, in place of other files") {
  kill_everywhere(
      {.command = {"eval", "in/model", "--data", "in/data.jsonl", "--scales", "in/scales.json",
                   "--report", "out/r.html", "--junit", "out/j.xml", "--greedy-tokens", "2",
                   "--threads", "1", "--device", "cpu", "-q", "--force"},
       .outputs = {"out/r.html", "out/j.xml"},
       .replaces = true});
}

TEST_CASE("cli kills: pages of calibrate and inspect, and an outcome of verify") {
  kill_everywhere({.command = with(kCalibrate, {"--report", "out/r.html", "--force"}),
                   .outputs = {"out/s.json", "out/h.hist", "out/r.html"},
                   .replaces = true});
  kill_everywhere(
      {.command = {"inspect", "in/scales.json", "--report", "out/r.html", "-q", "--force"},
       .outputs = {"out/r.html"},
       .replaces = true});
  kill_everywhere(
      {.command = {"verify", "in/served", "--runtime", "vllm", "--junit", "out/j.xml", "-q"},
       .outputs = {"out/j.xml"}});
}

TEST_CASE("cli kills: merge, extract and a scale file of inject, in place of other files") {
  kill_everywhere(
      {.command = {"merge", "in/0.json", "in/1.json", "-o", "out/m.json", "-q", "--force"},
       .outputs = {"out/m.json"},
       .replaces = true});
  kill_everywhere({.command = {"extract", "in/scales.json", "-o", "out/e.json", "-q", "--force"},
                   .outputs = {"out/e.json"},
                   .replaces = true});
  kill_everywhere({.command = {"inject", "in/model", "-s", "in/scales.json", "--for", "json", "-o",
                               "out/i.json", "-q", "--force"},
                   .outputs = {"out/i.json"},
                   .replaces = true});
}

TEST_CASE("cli kills: inject, into a new folder and in place of another") {
  const Strings command = {"inject", "in/model", "-s", "in/scales.json", "-o", "out/m", "-q"};
  kill_everywhere({.command = command, .outputs = {"out/m"}});
  kill_everywhere({.command = with(command, {"--force", "--link", "copy"}),
                   .outputs = {"out/m"},
                   .replaces = true});
}

TEST_CASE("cli kills: quantize, whole or with finished shards kept") {
  const Strings command = {"quantize",  "in/model", "-s", "in/scales.json", "-o", "out/m",
                           "--threads", "1",        "-q"};
  kill_everywhere({.command = command, .outputs = {"out/m"}});
  kill_everywhere({.command = with(command, {"--force"}), .outputs = {"out/m"}, .replaces = true});
  kill_everywhere(
      {.command = with(command, {"--resume"}), .outputs = {"out/m"}, .keeps_state = true});
}

}  // namespace fp8kv
