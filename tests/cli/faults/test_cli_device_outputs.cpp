// A simulated device fails at every point of a command, and no output is half-written.
#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "support/program/run_cli.h"
#include "support/sanitizers.h"
#include "support/workplaces/device_place.h"

namespace fp8kv {
namespace {

using test::kCalibrate;
using test::kEval;
using test::kRun;
using test::kSyncHelp;
using Names = std::set<std::string>;
using Place = test::DevicePlace;
using Strings = std::vector<std::string>;

constexpr int kLayers = Place::kLayers;

std::string records(const Strings& windows) {
  std::string text;
  for (const std::string& ids : windows) text += cat("{\"input_ids\": [", ids, "]}\n");
  return text;
}

Strings with(Strings command, const Strings& more) {
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

std::string at(const std::string& kind, const std::string& op, int launch) {
  return cat(kind, ":", op, ":", launch);
}

// Ops of the model's layers that get faults. Builds with AddressSanitizer also check the memory
// written and freed after a fault. ThreadSanitizer sees nothing new there, and each command takes
// it a second.
const Strings kLayerOps =
    test::kThreadSanitizer ? Strings{"linear", "attention"}
                           : Strings{"rmsnorm", "linear", "rope_append", "attention", "activate"};
constexpr int kOncePerLayer = test::kThreadSanitizer ? 1 : 3;
constexpr int kMorePerLayer = test::kThreadSanitizer ? 1 : 2;

}  // namespace

TEST_CASE("cli device faults: calibrate goes on after any of them to the same bytes") {
  const Place place;
  REQUIRE(place.run(kCalibrate, "").exit_code == 0);
  const std::string expected = place.read("s.json");
  CHECK(place.made() == Names{"s.json"});
  place.clear();
  int faults = 0;
  int gone_on = 0;
  for (const std::string& kind : Strings{"lost", "fault"}) {
    for (const std::string& op : kLayerOps) {
      // Launches per layer, so that the next fault hits the next layer.
      const int step = op == "linear" ? 4 : op == "rmsnorm" ? 2 : 1;
      for (int launch = 1;; launch += step) {
        CAPTURE(at(kind, op, launch));
        const test::CliResult faulty = place.run(kCalibrate, at(kind, op, launch));
        if (faulty.exit_code == 0) break;
        CHECK(faulty.exit_code == 4);
        CHECK(faulty.out.empty());
        const int layer = launch / step - (step > 1 ? 0 : 1);
        CHECK(faulty.err.starts_with(cat("fp8kv: calibrate: layer ", layer, ": ")));
        const auto left = layer == 0 ? Names{} : Names{"s.json.partial"};
        CHECK(place.made() == left);
        gone_on += layer == 0 ? 0 : 1;
        CHECK(place.run(kCalibrate, "").exit_code == 0);
        CHECK(place.made() == Names{"s.json"});
        CHECK(place.read("s.json") == expected);
        place.clear();
        ++faults;
      }
      place.clear();
    }
  }
  // The last layer stops after its keys and values, so some ops run once less.
  CHECK(faults == 2 * (kOncePerLayer * kLayers + kMorePerLayer * (kLayers - 1)));
  CHECK(gone_on == faults - 2 * (kOncePerLayer + kMorePerLayer));
}

TEST_CASE("cli device faults: with steps a layer, or little memory, calibrate goes on as well") {
  const Place place;
  // A step for each prefix of the text: an eighth, a quarter, half and all of it.
  place.write("steps.jsonl", records({"2, 4, 6", "1, 3, 5, 7", "7, 6, 5, 4", "7, 1"}));
  const int steps = 4;
  const Strings whole = {"calibrate", "model", "--data",      "steps.jsonl", "--seq-len",
                         "16",        "--out", "made/s.json", "--resume"};
  REQUIRE(place.run(whole, "").exit_code == 0);
  const std::string expected = place.read("s.json");
  place.clear();
  // With so little memory, one layer is on the device at a time, and activations are in host
  // memory.
  const std::string refused = place.run(with(whole, {"--max-memory", "1KiB"}), "").err;
  const size_t begin = refused.find("pass --max-memory ") + 18, end = refused.find(" or more");
  REQUIRE(end != refused.npos);
  const std::string least = refused.substr(begin, end - begin);
  for (const Strings& command : {whole, with(whole, {"--max-memory", least})}) {
    CAPTURE(command.back());
    const int stride = test::kThreadSanitizer ? 7 : 3;  // hits every step of a layer in turn
    int launch = 1;
    for (;; launch += stride) {
      const std::string fault = at(launch % 2 == 0 ? "lost" : "fault", "rope_append", launch);
      CAPTURE(fault);
      const test::CliResult faulty = place.run(command, fault);
      if (faulty.exit_code == 0) break;
      const int layer = (launch - 1) / steps;
      CHECK(faulty.exit_code == 4);
      CHECK(faulty.err.starts_with(cat("fp8kv: calibrate: layer ", layer, ": ")));
      CHECK(place.made() == (layer == 0 ? Names{} : Names{"s.json.partial"}));
      CHECK(place.run(command, "").exit_code == 0);
      CHECK(place.made() == Names{"s.json"});
      CHECK(place.read("s.json") == expected);
      place.clear();
    }
    CHECK(launch > steps * kLayers);
    CHECK(launch <= steps * kLayers + stride);
    place.clear();
  }
}

TEST_CASE("cli device faults: in either round of --samples auto, calibrate goes on as well") {
  const Place place;
  Strings windows;  // 16 in the first round, the others in the second
  for (int i = 0; i < 20; ++i) windows.push_back(cat(1 + i % 7, ", ", 1 + i / 7, ", 3"));
  place.write("rounds.jsonl", records(windows));
  const Strings rounds = {"calibrate", "model",       "--data",   "rounds.jsonl", "--seq-len", "16",
                          "--out",     "made/s.json", "--resume", "--samples",    "auto"};
  REQUIRE(place.run(rounds, "").exit_code == 0);
  const std::string expected = place.read("s.json");
  place.clear();
  int faults = 0, gone_on = 0;
  for (int launch = 1;; launch += test::kThreadSanitizer ? 4 : 3) {
    CAPTURE(launch);
    const test::CliResult faulty = place.run(rounds, at("lost", "attention", launch));
    if (faulty.exit_code == 0) break;
    CHECK(faulty.exit_code == 4);
    gone_on += place.made() == Names{"s.json.partial"};
    CHECK(place.run(rounds, "").exit_code == 0);
    CHECK(place.made() == Names{"s.json"});
    CHECK(place.read("s.json") == expected);
    place.clear();
    ++faults;
  }
  CHECK(faults > kLayers);
  CHECK(gone_on > faults / 2);
}

TEST_CASE("cli device faults: wherever a device turns out to be full, nothing is half-written") {
  const Place place;
  for (const Strings& command : {kCalibrate, kRun, kEval}) {
    CAPTURE(command[0]);
    int allocation = 1;
    // Every seventh allocation, which covers each phase. ThreadSanitizer needs seconds for each,
    // and takes every ninth of these.
    for (;; allocation += test::kThreadSanitizer ? 63 : 7) {
      CAPTURE(allocation);
      const test::CliResult result = place.run(command, cat("full:", allocation));
      if (result.exit_code == 0) break;
      CHECK(result.exit_code == 5);
      CHECK(result.out.empty());
      CHECK(result.err.find("cannot allocate ") != std::string::npos);
      CHECK(result.err.find("\nhelp: ") != std::string::npos);
      CHECK(place.made().empty());
    }
    CHECK(allocation > 3 * 7);
    place.clear();
  }
}

TEST_CASE("cli device faults: run leaves whole answers only, those it had before") {
  const Place place;
  const std::string expected = place.run(kRun, "").out;
  CHECK(expected.ends_with("}\n"));
  std::set<ptrdiff_t> answers;  // numbers of answers printed before the fault
  for (const std::string& kind : Strings{"lost", "fault"}) {
    // A run takes ThreadSanitizer ten to twenty seconds. A fault leaves the same state as a loss.
    const int stride = !test::kThreadSanitizer ? 1 : kind == "lost" ? 2 : 6;
    for (int step = 1;; step += stride) {
      CAPTURE(at(kind, "sample", step));
      const test::CliResult faulty = place.run(kRun, at(kind, "sample", step));
      if (faulty.exit_code == 0) break;
      CHECK(faulty.exit_code == 4);
      CHECK(expected.starts_with(faulty.out));
      const bool whole = faulty.out.empty() || faulty.out.ends_with("\n");
      CHECK(whole);
      CHECK(faulty.err.ends_with(kSyncHelp));
      answers.insert(std::count(faulty.out.begin(), faulty.out.end(), '\n'));
    }
  }
  CHECK(answers == std::set<ptrdiff_t>{0, 1, 2, 3});
}

TEST_CASE("cli device faults: eval leaves no report") {
  const Place place;
  int faults = 0;
  for (const std::string& kind : Strings{"lost", "fault"}) {
    // Launches in the calibration, the greedy texts, the layers and the logits.
    const std::vector<int> layers =
        test::kThreadSanitizer ? std::vector{5, 20} : std::vector{2, 5, 9, 14, 20};
    for (const auto& [op, launches] : std::vector<std::pair<std::string, std::vector<int>>>{
             {"rope_append", layers}, {"linear", {60}}, {"activate", {20}}}) {
      for (const int launch : launches) {
        CAPTURE(at(kind, op, launch));
        const test::CliResult result = place.run(kEval, at(kind, op, launch));
        CHECK(result.exit_code == 4);
        CHECK(result.out.empty());
        CHECK(result.err.ends_with(kSyncHelp));
        CHECK(place.made().empty());
        ++faults;
      }
    }
  }
  CHECK(faults == (test::kThreadSanitizer ? 8 : 14));
}

}  // namespace fp8kv
