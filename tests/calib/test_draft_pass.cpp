#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "calib/calibration_state.h"
#include "calib/collect.h"
#include "calib/rounds.h"
#include "checkpoint/drafts/draft_model.h"
#include "checkpoint/model/read_model_config.h"
#include "support/models/draft_golden.h"
#include "support/models/family_model.h"

namespace fp8kv {
namespace {

using test::DraftGolden;
using WindowIds = std::vector<std::vector<int32_t>>;

struct Drafted {
  explicit Drafted(const DraftGolden& golden)
      : config(read_model_config(golden.checkpoint)),
        drafts(read_draft_models(golden.checkpoint, config)) {}

  CollectedMagnitudes collect_over(const DraftGolden& golden, const WindowIds& windows,
                                   int64_t batch_rows = kBatchRows) const {
    const auto backend = make_cpu_backend(2);
    Log log(Verbosity::quiet);
    return collect({golden.checkpoint, config, *backend}, windows, log,
                   {.batch_rows = batch_rows, .drafts = drafts.measured});
  }

  ModelConfig config;
  DraftModels drafts;
};

bool same_maxima(const LayerMagnitudes& a, const LayerMagnitudes& b) {
  return layer_amax(a) == layer_amax(b);
}

}  // namespace

TEST_CASE("draft pass: K and V of a draft layer reach what transformers' layer caches") {
  for (const char* name : test::kDraftGoldens) {
    CAPTURE(name);
    const DraftGolden golden(name);
    const Drafted drafted(golden);
    REQUIRE(drafted.drafts.measured.size() == 1);
    CHECK(drafted.drafts.left_out.empty());
    CHECK(drafted.drafts.measured[0].layer.name == golden.layer);
    const CollectedMagnitudes found = drafted.collect_over(golden, {golden.ids});
    REQUIRE(found.drafts.size() == 1);
    test::check_heads(found.drafts[0].k, golden.golden.at("k_amax"));
    test::check_heads(found.drafts[0].v, golden.golden.at("v_amax"));
  }
}

TEST_CASE("draft pass: the model's own layers are counted as without a draft layer") {
  const DraftGolden golden("qwen3.5");
  const Drafted drafted(golden);
  const auto backend = make_cpu_backend(2);
  Log log(Verbosity::quiet);
  const auto alone =
      collect_magnitudes({golden.checkpoint, drafted.config, *backend}, {golden.ids}, log);
  const auto found = drafted.collect_over(golden, {golden.ids}).layers;
  REQUIRE(found.size() == alone.size());
  for (size_t layer = 0; layer < alone.size(); ++layer) {
    CAPTURE(layer);
    CHECK(words_of(found[layer]) == words_of(alone[layer]));
  }
}

TEST_CASE("draft pass: windows of one token give nothing, and batches change nothing") {
  const DraftGolden golden("glm4-moe");
  const Drafted drafted(golden);
  const auto& ids = golden.ids;
  const WindowIds windows = {
      {ids[0]}, ids, {ids[3], ids[4]}, {ids[1]}, {ids.begin(), ids.begin() + 20}};
  const auto whole = drafted.collect_over(golden, windows).drafts;
  const auto apart = drafted.collect_over(golden, windows, 21).drafts;
  REQUIRE(whole.size() == 1);
  CHECK(words_of(whole[0]) == words_of(apart[0]));
  CollectedMagnitudes sum = drafted.collect_over(golden, {{ids[0]}});
  CHECK(!sum.drafts[0].has_cache());
  for (size_t i = 1; i < windows.size(); ++i) {
    add_up(sum, drafted.collect_over(golden, {windows[i]}));
  }
  CHECK(same_maxima(sum.drafts[0], whole[0]));
  // Counts 8 elements of K per head for every token but the last of each window.
  uint64_t counted = 0;
  for (const uint64_t bin : whole[0].k[0].bins) counted += bin;
  CHECK(counted == 8 * (39 + 1 + 19));
}

TEST_CASE("draft pass: rounds add up to one run over all windows") {
  const DraftGolden golden("qwen3-next");
  const Drafted drafted(golden);
  const auto& ids = golden.ids;
  WindowIds windows;
  for (int i = 0; i < 4; ++i) windows.emplace_back(ids.begin() + i, ids.begin() + 20 + i);
  const auto backend = make_cpu_backend(2);
  Log log(Verbosity::quiet);
  const Rounds rounds =
      collect_in_rounds({golden.checkpoint, drafted.config, *backend}, windows, log,
                        {.collect = {.drafts = drafted.drafts.measured}, .first_round = 1});
  WindowIds run(windows.begin(), windows.begin() + static_cast<std::ptrdiff_t>(rounds.windows));
  const auto whole = drafted.collect_over(golden, run).drafts;
  CHECK(words_of(rounds.collected.drafts[0]) == words_of(whole[0]));
}

TEST_CASE("draft pass: what earlier rounds counted of a draft layer comes back from the state") {
  const DraftGolden golden("glm4-moe");
  const Drafted drafted(golden);
  const auto backend = make_cpu_backend(2);
  Log log(Verbosity::quiet);
  const CollectedMagnitudes before = drafted.collect_over(golden, {golden.ids});
  const std::filesystem::path path = golden.folder / "s.partial";
  CalibrationState state(path, {});
  state.begin_round({1, 1, before});
  const CollectOptions options{.state = &state, .drafts = drafted.drafts.measured};
  const auto second =
      collect({golden.checkpoint, drafted.config, *backend}, {golden.ids}, log, options);
  CHECK(words_of(second.drafts.at(0)) == words_of(before.drafts[0]));
  CalibrationState again(path, {});
  const auto round = again.find_round(drafted.config);
  REQUIRE(round);
  REQUIRE(round->before.drafts.size() == 1);
  CHECK(words_of(round->before.drafts[0]) == words_of(before.drafts[0]));
  // The saved state lacks the last layer and the draft layer after it.
  again.begin_round(*round);
  const CollectOptions resumed{.state = &again, .drafts = drafted.drafts.measured};
  const auto rest =
      collect({golden.checkpoint, drafted.config, *backend}, {golden.ids}, log, resumed);
  CHECK(words_of(rest.drafts.at(0)) == words_of(before.drafts[0]));
}

}  // namespace fp8kv
