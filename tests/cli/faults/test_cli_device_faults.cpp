// A simulated device is full, lost or faulty, and the message names the operation.
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "support/program/run_cli.h"
#include "support/workplaces/device_place.h"

namespace fp8kv {
namespace {

using test::kCalibrate;
using test::kEval;
using test::kRun;
using test::kSyncHelp;
using Place = test::DevicePlace;
using Strings = std::vector<std::string>;

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
