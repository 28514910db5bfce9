#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "backend/forwarding_backend.h"
#include "calib/rounds.h"
#include "data/text_parts.h"
#include "support/models/streamed_model.h"
#include "support/program/capture_stderr.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

using WindowIds = std::vector<std::vector<int32_t>>;

// `count` windows like those of StreamedModel.
WindowIds windows_of(size_t count) {
  WindowIds windows;
  for (size_t i = 0; i < count; ++i) {
    WindowIds more = test::StreamedModel::windows();
    std::vector<int32_t> window = more[i % more.size()];
    std::rotate(window.begin(), window.begin() + static_cast<ptrdiff_t>(i % window.size()),
                window.end());
    windows.push_back(std::move(window));
  }
  return windows;
}

struct Counting final : ForwardingBackend {
  using ForwardingBackend::ForwardingBackend;
  void rope_append(const RopeAppend& args) override {
    rows += args.k.shape[0];
    inner().rope_append(args);
  }
  int64_t rows = 0;  // rows of all layers
};

struct Scene {
  Rounds run(const WindowIds& windows, size_t first_round, CalibrationState* state = nullptr,
             GrowthOf growth = GrowthOf::layer) {
    Log log(Verbosity::quiet);
    return collect_in_rounds(
        {model.checkpoint, model.config, counting}, windows, log,
        {.collect = {.state = state}, .first_round = first_round, .growth = growth});
  }
  // The magnitudes of one run over the first `count` windows.
  CollectedMagnitudes at_once(const WindowIds& windows, size_t count) {
    Log log(Verbosity::quiet);
    WindowIds first(windows.begin(), windows.begin() + static_cast<ptrdiff_t>(count));
    const TextParts parts = put_parts_first(first);
    return collect({model.checkpoint, model.config, *backend}, first, log, {.parts = parts});
  }

  const test::StreamedModel model;
  const std::unique_ptr<Backend> backend = make_cpu_backend(1);
  Counting counting{*backend};
};

void check_same(const CollectedMagnitudes& a, const CollectedMagnitudes& b) {
  CHECK(test::same_bits(a.layers, b.layers));
  CHECK(a.parts == b.parts);
  CHECK(a.reached == b.reached);
}

TEST_CASE("rounds: however many there are, they collect what one run does, each window once") {
  Scene scene;
  const WindowIds windows = windows_of(13);
  const Rounds whole = scene.run(windows, 0);
  CHECK(whole.windows == 13);
  CHECK_FALSE(whole.growth);
  const int64_t rows = std::exchange(scene.counting.rows, 0);
  check_same(whole.collected, scene.at_once(windows, 13));
  CHECK(whole.collected.parts.back().tokens > 0);
  for (const size_t first : {1, 5, 12}) {
    CAPTURE(first);
    scene.counting.rows = 0;
    const Rounds found = scene.run(windows, first);
    check_same(found.collected, scene.at_once(windows, found.windows));
    if (found.windows == 13) CHECK(scene.counting.rows == rows);
  }
}

TEST_CASE("rounds: text that brings nothing new is the last that is run") {
  Scene scene;
  WindowIds windows = windows_of(4);
  for (int i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 4; ++j) windows.push_back(windows[j]);
  }
  const Rounds found = scene.run(windows, 4);
  CHECK(found.windows == 8);
  REQUIRE(found.growth);
  CHECK(found.growth->share == 0);
  check_same(found.collected, scene.at_once(windows, 8));
}

TEST_CASE("rounds: the growth that decides is that of the last doubling") {
  Scene scene;
  const WindowIds windows = windows_of(32);
  // The expected rounds, from plain loops over single runs of each length.
  const auto amax_of = [&](size_t count) {
    std::vector<float> amax;
    for (const LayerMagnitudes& layer : scene.at_once(windows, count).layers) {
      for (const auto* heads : {&layer.k, &layer.v}) {
        float most = 0;
        for (const MagnitudeCounts& head : *heads) most = std::max(most, head.amax);
        amax.push_back(most);
      }
    }
    return amax;
  };
  const auto tokens = [&](size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; ++i) sum += static_cast<double>(windows[i].size());
    return sum;
  };
  for (const size_t first : {1, 2, 3, 5, 7, 9, 11}) {
    CAPTURE(first);
    size_t expected = first;
    for (bool settled = false; !settled && expected < windows.size();) {
      const size_t next = std::min(2 * expected, windows.size());
      const std::vector<float> before = amax_of(expected), after = amax_of(next);
      const double doublings = std::log2(tokens(next) / tokens(expected));
      double most = 0;
      for (size_t i = 0; i < after.size(); ++i) {
        most = std::max(most, std::pow(double{after[i]} / double{before[i]}, 1 / doublings) - 1);
      }
      settled = most <= 0.05;
      expected = next;
    }
    CHECK(scene.run(windows, first).windows == expected);
  }
}

TEST_CASE("rounds: a state goes on in its round, without running those before again") {
  const test::TempDir folder;
  Scene scene;
  WindowIds windows = windows_of(4);
  for (size_t j = 0; j < 4; ++j) windows.push_back(windows[j]);
  const RunIdentity identity{{{"key", "what", "value"}}};
  CalibrationState first(folder / "s.partial", identity);
  const Rounds whole = scene.run(windows, 4, &first);
  REQUIRE(whole.windows == 8);
  // The state holds all layers of the second round except the last.
  CalibrationState again(folder / "s.partial", identity);
  scene.counting.rows = 0;
  const Rounds found = scene.run(windows, 4, &again);
  CHECK(found.windows == 8);
  check_same(found.collected, whole.collected);
  int64_t rows = 0;
  for (size_t i = 4; i < 8; ++i) rows += static_cast<int64_t>(windows[i].size());
  CHECK(scene.counting.rows == rows);
}

}  // namespace
}  // namespace fp8kv
