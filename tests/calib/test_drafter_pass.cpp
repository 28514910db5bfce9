#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "calib/collect.h"
#include "calib/rounds.h"
#include "checkpoint/drafts/drafter.h"
#include "checkpoint/model/read_model_config.h"
#include "support/expect_error.h"
#include "support/models/drafter_golden.h"

namespace fp8kv {
namespace {

using test::DrafterGolden;
using test::error_of;
using WindowIds = std::vector<std::vector<int32_t>>;

struct Drafted {
  explicit Drafted(const DrafterGolden& golden)
      : config(read_drafter_config(golden.drafter)),
        target(read_model_config(golden.target)),
        drafter{golden.drafter, config} {
    check_target(config, target, "target");
  }

  CollectedMagnitudes collect_over(const DrafterGolden& golden, const WindowIds& windows,
                                   int64_t batch_rows = kBatchRows,
                                   const TextParts& parts = {}) const {
    const auto backend = make_cpu_backend(2);
    Log log(Verbosity::quiet);
    return collect({golden.target, target, *backend}, windows, log,
                   {.batch_rows = batch_rows, .parts = parts, .drafter = &drafter});
  }

  ModelConfig config, target;
  Drafter drafter;
};

}  // namespace

TEST_CASE("drafter pass: K and V of an EAGLE-3 drafter reach what PyTorch computes") {
  for (const char* name : test::kDrafterGoldens) {
    CAPTURE(name);
    const DrafterGolden golden(name);
    const CollectedMagnitudes found = Drafted(golden).collect_over(golden, {golden.ids});
    REQUIRE(found.layers.size() == 1);
    test::check_heads(found.layers[0].k, golden.golden.at("k_amax"));
    test::check_heads(found.layers[0].v, golden.golden.at("v_amax"));
  }
}

TEST_CASE("drafter pass: every part of a drafter's input matters to its K") {
  struct Change {
    const char* name;
    const char* tensor;
  };
  constexpr Change kChanges[] = {{"flat", "fc.weight"},
                                 {"flat", "midlayer.hidden_norm.weight"},
                                 {"flat", "midlayer.input_layernorm.weight"},
                                 {"speculators", "embed_tokens.weight"},
                                 {"speculators", "layers.0.self_attn.k_proj.bias"}};
  for (const Change& change : kChanges) {
    CAPTURE(change.tensor);
    const DrafterGolden golden(change.name);
    const auto before = Drafted(golden).collect_over(golden, {golden.ids}).layers[0];
    const auto path = test::source_dir() / "tests/golden/drafters" / cat(change.name, ".json");
    std::string text = test::read_file(path);
    const size_t base = text.find("\"base\": ", text.find(cat('"', change.tensor, "\": {")));
    REQUIRE(base != text.npos);
    text.insert(base + 8, "1");  // 0.0 becomes 10.0, and 1.0 becomes 11.0
    const Checkpoint changed =
        test::write_golden_model(golden.folder / "changed", Json::parse(text, "golden"));
    const ModelConfig config = read_drafter_config(changed);
    const ModelConfig target = read_model_config(golden.target);
    const Drafter drafter{changed, config};
    const auto backend = make_cpu_backend(2);
    Log log(Verbosity::quiet);
    const auto after =
        collect({golden.target, target, *backend}, {golden.ids}, log, {.drafter = &drafter});
    CHECK(words_of(after.layers[0]) != words_of(before));
  }
}

TEST_CASE("drafter pass: batches change nothing, and parts and rounds add up") {
  const DrafterGolden golden("speculators");
  const Drafted drafted(golden);
  const auto& ids = golden.ids;
  const WindowIds windows = {
      {ids[0]}, ids, {ids[3], ids[4]}, {ids[1]}, {ids.begin(), ids.begin() + 20}};
  const auto whole = drafted.collect_over(golden, windows);
  const auto apart = drafted.collect_over(golden, windows, 21);
  CHECK(words_of(whole.layers[0]) == words_of(apart.layers[0]));
  // Counts 12 elements of K per head for every token but the last of each window.
  uint64_t counted = 0;
  for (const uint64_t bin : whole.layers[0].k[0].bins) counted += bin;
  CHECK(counted == 12 * (39 + 1 + 19));

  const auto two = drafted.collect_over(golden, {windows[0], windows[1]});
  const auto parts = drafted.collect_over(golden, windows, kBatchRows, {2, 3, 5});
  REQUIRE(parts.parts[0].layers.size() == 1);
  CHECK(parts.parts[0].layers[0] == layer_amax(two.layers[0]));
  CHECK(parts.parts[2].layers[0] == layer_amax(whole.layers[0]));

  const auto backend = make_cpu_backend(2);
  Log log(Verbosity::quiet);
  WindowIds four;
  for (int i = 0; i < 4; ++i) four.emplace_back(ids.begin() + i, ids.begin() + 20 + i);
  const Rounds rounds =
      collect_in_rounds({golden.target, drafted.target, *backend}, four, log,
                        {.collect = {.drafter = &drafted.drafter}, .first_round = 1});
  const WindowIds run(four.begin(), four.begin() + static_cast<std::ptrdiff_t>(rounds.windows));
  CHECK(words_of(rounds.collected.layers[0]) ==
        words_of(drafted.collect_over(golden, run).layers[0]));
}

TEST_CASE("drafter pass: windows of one token are refused") {
  const DrafterGolden golden("flat");
  const Drafted drafted(golden);
  CHECK(error_of([&] { drafted.collect_over(golden, {{golden.ids[0]}}); }) ==
        "no window has two tokens, and a drafter reads a token and the next");
}

TEST_CASE("drafter: targets that do not fit are refused") {
  const DrafterGolden golden("flat");
  const Drafted drafted(golden);
  const auto refusal = [&](const ModelConfig& target) {
    return error_of([&] { check_target(drafted.config, target, "--target 'm'"); });
  };
  // Their hidden states are several rows.
  ModelConfig several = drafted.target, connected = several;
  several.streams = StreamsConfig{.count = 2};
  connected.hyper = HyperConfig{.count = 2};
  for (const ModelConfig& each : {several, connected}) {
    CHECK(refusal(each) ==
          cat("--target 'm': drafts for ", each.architecture, " are not computed here"));
  }
  ModelConfig target = drafted.target;
  target.dim = 48;
  CHECK(refusal(target) ==
        "--target 'm': its hidden states have 48 elements, but the drafter reads states of 32");
  target = drafted.target;
  target.vocab_size = 76;
  CHECK(refusal(target) ==
        "--target 'm': has a vocabulary of 76 tokens, but the drafter one of 77");
  target = drafted.target;
  target.layers.pop_back();
  CHECK(refusal(target) ==
        "--target 'm': has 2 layers, but the drafter reads the inputs of layers 1, 2 and 3");
}

TEST_CASE(
    "drafter: layers that a config does not name are the second, the middle and the third "
    "from the end") {
  const DrafterGolden golden("flat");
  const Drafted drafted(golden);
  ModelConfig drafter = drafted.config, target = drafted.target;
  drafter.drafter->hidden_layers.clear();
  target.layers.resize(32, target.layers[0]);
  CHECK(hidden_layers_of(drafter, target) == std::vector<int64_t>{2, 16, 29});
}

}  // namespace fp8kv
