// A simulated device is full, lost or faulty at every point of a command. The message names the
// operation, and no output is half-written.
#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "support/models/small_tokenizer.h"
#include "support/models/tiny_checkpoint.h"
#include "support/program/run_cli.h"
#include "support/sanitizers.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;
using Names = std::set<std::string>;

constexpr int kLayers = 4;

// A folder with a model, text and prompts. Outputs go to "made".
class Place {
 public:
  Place() {
    test::TinyConfig config = test::tiny_config();
    config.n_layers = kLayers;
    config.vocab_size = 8;
    config.eos_ids = {0};  // never drawn
    test::write_tiny_checkpoint(temp_ / "model", config, {.n_shards = 3});
    temp_.write("model/tokenizer.json", test::SmallTokenizer().text());
    temp_.write("text.jsonl", R"({"input_ids": [1, 2, 3, 4, 5, 6, 7, 1, 3, 5, 7]})"
                              "\n"
                              R"({"input_ids": [2, 2, 6, 4, 1]})"
                              "\n"
                              R"({"input_ids": [7, 1]})"
                              "\n");
    temp_.write("prompts.jsonl", R"({"input_ids": [1, 2, 3], "max_tokens": 2})"
                                 "\n"
                                 R"({"input_ids": [3, 2, 1, 5], "max_tokens": 3})"
                                 "\n"
                                 R"({"input_ids": [7], "max_tokens": 4})"
                                 "\n"
                                 R"({"input_ids": [6, 1], "max_tokens": 7})"
                                 "\n");
    fs::create_directory(temp_ / "made");
  }

  // Runs a command with a fault in the syntax of kernels/sim/sim_faults.h; "": no fault.
  test::CliResult run(Strings arguments, const std::string& fault, Strings environment = {}) const {
    arguments.insert(arguments.end(), {"--device", "sim", "--quiet"});
    if (!fault.empty()) environment.push_back("FP8KV_SIM_FAULT=" + fault);
    return test::run_cli(arguments, {.folder = temp_.path(), .environment = environment});
  }

  Names made() const {
    Names names;
    for (const auto& entry : fs::directory_iterator(temp_ / "made")) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }
  void write(const std::string& name, const std::string& text) const { temp_.write(name, text); }
  std::string read(const std::string& name) const { return test::read_file(temp_ / "made" / name); }
  void clear() const {
    for (const std::string& name : made()) fs::remove(temp_ / "made" / name);
  }

 private:
  test::TempDir temp_;
};

const Strings kCalibrate = {"calibrate", "model", "--data",      "text.jsonl", "--seq-len",
                            "16",        "--out", "made/s.json", "--resume"};
const Strings kRun = {"run", "model", "--prompts", "prompts.jsonl", "--max-batch", "2", "--json"};
const Strings kEval = {"eval",       "model",       "--data",          "text.jsonl",
                       "--seq-len",  "16",          "--policy",        "amax,amax*2",
                       "--report",   "made/r.html", "--junit",         "made/j.xml",
                       "--baseline", "float32",     "--greedy-tokens", "2"};

std::string records(const Strings& windows) {
  std::string text;
  for (const std::string& ids : windows) text += cat("{\"input_ids\": [", ids, "]}\n");
  return text;
}

Strings with(Strings command, const Strings& more) {
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

const std::string kSyncHelp =
    "help: run again with FP8KV_SYNC=1 to have the fault named where it happens\n";

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

TEST_CASE("cli device faults: a lost device is told with the op that was launched") {
  const Place place;
  const test::CliResult result = place.run(kCalibrate, "lost:rope_append:3");
  CHECK(result.exit_code == 4);
  CHECK(result.out.empty());
  CHECK(result.err ==
        "fp8kv: calibrate: layer 2: launching rope_append: the device is lost (simulated); "
        "not known to be done: 2 launches (rmsnorm, linear) and copies\n" +
            kSyncHelp);
}

TEST_CASE("cli device faults: who waits hears of a fault, with the ops that may have made it") {
  const Place place;
  const std::string suspects =
      "; not known to be done: 9 launches (rmsnorm, linear, rope_append, attention, activate) and "
      "copies\n";
  for (const char* fault : {"fault:rope_append:2", "fault:activate:2", "fault:linear:5"}) {
    CAPTURE(fault);
    const test::CliResult result = place.run(kCalibrate, fault);
    CHECK(result.exit_code == 4);
    CHECK(result.err ==
          "fp8kv: calibrate: layer 1: copying from the device: an illegal memory access "
          "(simulated)" +
              suspects + kSyncHelp);
    place.clear();
  }
}

TEST_CASE("cli device faults: with FP8KV_SYNC a fault is told with its op, and no other") {
  const Place place;
  for (const auto& [fault, where] : std::vector<std::pair<std::string, std::string>>{
           {"fault:rope_append:2", "layer 1: rope_append"},
           {"fault:activate:3", "layer 2: activate"}}) {
    const test::CliResult result = place.run(kCalibrate, fault, {"FP8KV_SYNC=1"});
    CHECK(result.exit_code == 4);
    CHECK(result.err ==
          cat("fp8kv: calibrate: ", where, ": an illegal memory access (simulated)\n",
              "help: the device or this program is at fault: use --device cpu, and report it\n"));
    place.clear();
  }
  const test::CliResult run = place.run(kRun, "fault:attention:6", {"FP8KV_SYNC=1"});
  CHECK(run.exit_code == 4);
  CHECK(run.err ==
        "fp8kv: run: decoding 2 sequences: attention: an illegal memory access (simulated)\n"
        "help: the device or this program is at fault: use --device cpu, and report it\n");
}

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

TEST_CASE("cli device faults: a full device is told with what it had no room for") {
  const Place place;
  const auto check = [&](const Strings& command, int allocation, const std::string& expected) {
    CAPTURE(allocation);
    const test::CliResult result = place.run(command, cat("full:", allocation));
    CHECK(result.exit_code == 5);
    CHECK(result.out.empty());
    CHECK(result.err == cat("fp8kv: ", command[0], ": ", expected));
  };
  const std::string none = " on the device, which has 0 B left\n";
  const std::string calibrate =
      none + "help: use a smaller --max-memory or --seq-len, or free memory\n";
  check(kCalibrate, 1, "activations: cannot allocate 2.25 KiB" + calibrate);
  check(kCalibrate, 2, "working memory: cannot allocate 352 B" + calibrate);
  check(kCalibrate, 20,
        "working memory: KV cache of 3 pages, 192 tokens: cannot allocate 12.0 KiB" + calibrate);
  check(kCalibrate, 23, "layer buffer 1 of 2: cannot allocate 30.5 KiB" + calibrate);
  check(kRun, 1,
        "working memory: cannot allocate 8.00 KiB" + none +
            "help: use a smaller --max-batch, shorter prompts or fewer new tokens\n");
  check(kRun, 31,
        "weight 'model.layers.0.self_attn.v_proj.weight': cannot allocate 2.00 KiB" + none +
            "help: free memory of the device, or run on the CPU: the weights have to fit\n");
  check(kRun, 66,
        "KV cache of 4 pages, 256 tokens: cannot allocate 20.0 KiB" + none +
            "help: use a smaller --gpu-memory or an FP8 cache, or free memory\n");
  const std::string eval =
      none + "help: use a smaller --seq-len, fewer --samples or fewer candidates; or free memory\n";
  check(kEval, 90,
        "greedy texts: KV cache of 2 pages, 128 tokens: cannot allocate 12.0 KiB" + eval);
  check(kEval, 130,
        "working memory: KV cache of 2 pages, 128 tokens: cannot allocate 2.00 KiB" + eval);
  CHECK(place.made().empty());
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

TEST_CASE("cli device faults: a prompt, a token and a recorded step are named") {
  const Place place;
  const auto said = [&](const std::string& fault) { return place.run(kRun, fault).err; };
  CHECK(said("lost:rope_append:1") ==
        "fp8kv: run: reading 7 tokens: launching rope_append: the device is lost (simulated); "
        "not known to be done: 3 launches (embed, rmsnorm, linear) and copies\n" +
            kSyncHelp);
  CHECK(said("fault:sample:2") ==
        "fp8kv: run: decoding 2 sequences: copying from the device: an illegal memory access "
        "(simulated); not known to be done: 25 launches (embed, project_append, attention, "
        "linear, hidden, rmsnorm, sample) and copies\n" +
            kSyncHelp);
  CHECK(said("lost:attention:14") ==
        "fp8kv: run: decoding 2 sequences: running a recorded step: the device is lost "
        "(simulated); not known to be done: copies\n" +
            kSyncHelp);
  CHECK(said("fault:attention:14") ==
        "fp8kv: run: decoding 2 sequences: copying from the device: an illegal memory access "
        "(simulated); not known to be done: 1 launch (a recorded step) and copies\n" +
            kSyncHelp);
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

TEST_CASE("cli device faults: what is no fault is refused") {
  const Place place;
  for (const char* fault :
       {"full", "full:0", "full:x", "full:activate:1", "lost:1", "burnt:activate:1"}) {
    const test::CliResult result = place.run(kCalibrate, fault);
    CHECK(result.exit_code == 4);
    CHECK(result.err == cat("fp8kv: calibrate: FP8KV_SIM_FAULT is '", fault,
                            "', which is no fault\n",
                            "help: use full:N, lost:OP:N or fault:OP:N\n"));
  }
}

}  // namespace fp8kv
