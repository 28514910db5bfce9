// A folder where commands run on a simulated device with faults.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "support/models/small_tokenizer.h"
#include "support/models/tiny_checkpoint.h"
#include "support/program/run_cli.h"
#include "support/temp_dir.h"

namespace fp8kv::test {

// A folder with a model, text and prompts. Outputs go to "made".
class DevicePlace {
 public:
  static constexpr int kLayers = 4;

  DevicePlace() {
    TinyConfig config = tiny_config();
    config.n_layers = kLayers;
    config.vocab_size = 8;
    config.eos_ids = {0};  // never drawn
    write_tiny_checkpoint(temp_ / "model", config, {.n_shards = 3});
    temp_.write("model/tokenizer.json", SmallTokenizer().text());
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
    std::filesystem::create_directory(temp_ / "made");
  }

  // Runs a command with a fault in the syntax of kernels/sim/sim_faults.h; "": no fault.
  CliResult run(std::vector<std::string> arguments, const std::string& fault,
                std::vector<std::string> environment = {}) const {
    arguments.insert(arguments.end(), {"--device", "sim", "--quiet"});
    if (!fault.empty()) environment.push_back("FP8KV_SIM_FAULT=" + fault);
    return run_cli(arguments, {.folder = temp_.path(), .environment = environment});
  }

  std::set<std::string> made() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(temp_ / "made")) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }
  void write(const std::string& name, const std::string& text) const { temp_.write(name, text); }
  std::string read(const std::string& name) const { return read_file(temp_ / "made" / name); }
  void clear() const {
    for (const std::string& name : made()) std::filesystem::remove(temp_ / "made" / name);
  }

 private:
  TempDir temp_;
};

// Commands that calibrate, run and evaluate that model.
inline const std::vector<std::string> kCalibrate = {"calibrate",  "model",       "--data",
                                                    "text.jsonl", "--seq-len",   "16",
                                                    "--out",      "made/s.json", "--resume"};
inline const std::vector<std::string> kRun = {"run",         "model", "--prompts", "prompts.jsonl",
                                              "--max-batch", "2",     "--json"};
inline const std::vector<std::string> kEval = {
    "eval",       "model",       "--data",          "text.jsonl",
    "--seq-len",  "16",          "--policy",        "amax,amax*2",
    "--report",   "made/r.html", "--junit",         "made/j.xml",
    "--baseline", "float32",     "--greedy-tokens", "2"};

// The end of a message about a fault that was told late.
inline const std::string kSyncHelp =
    "help: run again with FP8KV_SYNC=1 to have the fault named where it happens\n";

}  // namespace fp8kv::test
