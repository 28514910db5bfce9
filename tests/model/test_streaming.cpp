// Calibration on a device: layers and activations that come and go while it computes.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "base/error.h"
#include "base/text.h"
#include "calib/collect.h"
#include "calib/windows/memory_plan.h"
#include "checkpoint/model/read_model_config.h"
#include "support/backends/gpu_backends.h"
#include "support/expect_error.h"
#include "support/models/family_model.h"
#include "support/models/streamed_model.h"
#include "support/models/streamed_plans.h"
#include "support/models/tiny_checkpoint.h"
#include "support/sanitizers.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

using test::all_layers;
using test::bounds_for;
using test::Interleaved;
using test::plan_for;

// The largest difference relative to the CPU's value, over all layers and heads.
double largest_difference(const std::vector<LayerMagnitudes>& found,
                          const std::vector<LayerMagnitudes>& expected) {
  double largest = 0;
  for (size_t layer = 0; layer < found.size(); ++layer) {
    for (size_t head = 0; head < found[layer].k.size(); ++head) {
      const auto difference = [head](const auto& a, const auto& b) {
        return std::abs(double{a[head].amax} - b[head].amax) / b[head].amax;
      };
      largest = std::max({largest, difference(found[layer].k, expected[layer].k),
                          difference(found[layer].v, expected[layer].v),
                          difference(found[layer].q, expected[layer].q)});
    }
  }
  return largest;
}

void check_against_cpu(const std::filesystem::path& folder, double tolerance) {
  const Checkpoint checkpoint = Checkpoint::open(folder);
  const ModelConfig config = read_model_config(checkpoint);
  std::vector<std::vector<int32_t>> windows;
  for (const int length : {20, 11}) {
    std::vector<int32_t>& window = windows.emplace_back();
    for (int i = 0; i < length; ++i) window.push_back((i * 37 + length) % 256);
  }
  Log log(Verbosity::quiet);
  const auto expected =
      collect_magnitudes({checkpoint, config, *make_cpu_backend(1)}, windows, log);
  for (const test::NamedBackend& named : test::gpu_backends()) {
    CAPTURE(named.name);
    const auto found = collect_magnitudes({checkpoint, config, *named.make()}, windows, log);
    REQUIRE(found.size() == expected.size());
    CHECK(largest_difference(found, expected) <= tolerance);
  }
}

}  // namespace

TEST_CASE("streaming: the same bits for any bound of memory, and never more than it") {
  const test::StreamedModel model;
  for (const test::NamedBackend& named : test::gpu_backends()) {
    CAPTURE(named.name);
    const auto expected = model.collect(*named.make());
    const auto bounds = bounds_for(model, *named.make());
    REQUIRE(bounds.size() >= 4);  // everything; rows on the host; one layer at a time
    for (const auto& bound : bounds) {
      CAPTURE(bound.value_or(0));
      const auto backend = named.make();
      const MemoryPlan plan = plan_for(model, *backend, bound);
      CHECK(test::same_bits(model.collect(*backend, {.max_memory = {bound}}), expected));
      // The plan is what a run takes, except for scratch of ops that not every step needs.
      CHECK(backend->memory()->peak <= plan.bytes);
      if (bound) CHECK(plan.bytes <= *bound);
      CHECK(backend->memory()->in_use <= plan.bytes / 2);
    }
  }
}

// In these models the layers are larger than all else, and have experts of their own.
TEST_CASE("streaming: the same bits for any bound of memory with experts, too") {
  const std::vector<test::NamedBackend> backends = test::gpu_backends();
  if (backends.empty()) return;
  for (const char* name : {"glm4-moe", "llama4-experts"}) {
    CAPTURE(name);
    const test::FamilyModel model(name);
    const std::vector<std::vector<int32_t>> windows = {
        model.ids, {model.ids.begin(), model.ids.begin() + 9}, {model.ids[3]}};
    const test::NamedBackend& named = backends.front();
    Log log(Verbosity::quiet);
    const auto collect = [&](std::optional<uint64_t> bound, uint64_t& peak) {
      const auto backend = named.make();
      CollectOptions options{.max_memory = {bound}};
      options.batch_rows = test::StreamedModel::kRows;
      auto found =
          collect_magnitudes({model.checkpoint, model.config, *backend}, windows, log, options);
      peak = backend->memory()->peak;
      return found;
    };
    uint64_t free_peak = 0, peak = 0;
    const auto expected = collect({}, free_peak);
    // A bound that just holds everything, and one that no longer does.
    for (const uint64_t bound : {free_peak, free_peak * 9 / 10}) {
      CAPTURE(bound);
      CHECK(test::same_bits(collect(bound, peak), expected));
      CHECK(peak <= bound);
    }
  }
}

TEST_CASE("streaming: the same bits in whatever order copies and ops run") {
  const test::StreamedModel model(DType::bf16);
  for (const test::NamedBackend& named : test::gpu_backends()) {
    CAPTURE(named.name);
    const auto expected = model.collect(*named.make());
    const auto bounds = bounds_for(model, *named.make());
    for (uint64_t seed = 1; seed <= (test::kThreadSanitizer ? 2u : 4u); ++seed) {
      CAPTURE(seed);
      const Interleaved interleaved(seed);
      for (const auto& bound : bounds) {
        CAPTURE(bound.value_or(0));
        const CollectOptions options{.max_memory = {bound},
                                     .stream = {.readers = 2, .block_bytes = 1000}};
        CHECK(test::same_bits(model.collect(*named.make(), options), expected));
      }
    }
  }
}

TEST_CASE("streaming: the same bits for any block size, number of readers, and past the cache") {
  const test::StreamedModel model(DType::f16);
  for (const test::NamedBackend& named : test::gpu_backends()) {
    CAPTURE(named.name);
    const auto expected = model.collect(*named.make());
    for (const StreamOptions& stream :
         {StreamOptions{.readers = 1, .block_bytes = 64},
          StreamOptions{.readers = 3, .block_bytes = 4097, .direct = true},
          StreamOptions{.readers = 4, .block_bytes = 1 << 20, .direct = false}}) {
      CAPTURE(stream.block_bytes);
      CHECK(test::same_bits(model.collect(*named.make(), {.stream = stream}), expected));
    }
  }
}

TEST_CASE("streaming: the CPU's magnitudes, up to the order of sums") {
  const test::StreamedModel model;
  const auto expected = model.collect(*make_cpu_backend(1));
  for (const test::NamedBackend& named : test::gpu_backends()) {
    CAPTURE(named.name);
    const auto found = model.collect(*named.make());
    REQUIRE(found.size() == expected.size());
    for (size_t layer = 0; layer < found.size(); ++layer) {
      for (size_t head = 0; head < found[layer].k.size(); ++head) {
        // The error of four layers: sums of at most 48 products in another order, each within 2^-24
        // of values near 1.
        constexpr double kTolerance = 4 * 48 * 0x1p-24 * 4;
        const double k = expected[layer].k[head].amax, v = expected[layer].v[head].amax;
        CHECK(std::abs(found[layer].k[head].amax - k) <= kTolerance * k);
        CHECK(std::abs(found[layer].v[head].amax - v) <= kTolerance * v);
      }
    }
  }
}

// Sums of at most 172 products in another order. Each of five layers is within 172 x 2^-24 of
// values that are a few times the result.
TEST_CASE("streaming: the CPU's largest magnitudes of stories260K in f32") {
  if (const auto folder = test::shared_data("models/stories260K-hf-f32")) {
    check_against_cpu(*folder, 1e-4);
  }
}

// 16-bit activations move a largest value by one or two roundings, each at most 2^-8.
TEST_CASE("streaming: the CPU's largest magnitudes of the demo model, but for activations") {
  check_against_cpu(test::source_dir() / "datasets" / "demo", 0x1p-6);
}

TEST_CASE("streaming: a bound that nothing fits in says the smallest that would do") {
  const test::StreamedModel model;
  for (const test::NamedBackend& named : test::gpu_backends()) {
    const auto backend = named.make();
    const uint64_t least = *bounds_for(model, *backend).back();
    CHECK(test::error_of([&] { model.collect(*backend, {.max_memory = {least - 1}}); },
                         ErrorKind::usage) ==
          cat("max_memory ", human_bytes(least - 1),
              ": too little for this model and these windows, which need ", human_bytes(least),
              " of device memory"));
    CHECK(test::help_of([&] { model.collect(*backend, {.max_memory = {least - 1}}); }) ==
          cat("pass max_memory ", least, "B or more, or take shorter windows"));
    CHECK(backend->memory()->peak == 0);  // nothing was allocated
  }
}

TEST_CASE("streaming: what ops take for windows of one token counts too") {
  const test::TempDir dir;
  test::TinyConfig shape = test::tiny_config();
  shape.dtype = DType::f16;
  shape.head_dim = 64;  // which the decode kernel is for
  test::write_tiny_checkpoint(dir / "model", shape);
  const Checkpoint checkpoint = Checkpoint::open(dir / "model");
  const ModelConfig config = read_model_config(checkpoint);
  // Batches of 3, 8 and 20 sequences of one row: scratch grows twice.
  std::vector<std::vector<int32_t>> windows;
  for (const int count : {3, 8, 20}) {
    for (int i = 0; i < count; ++i) windows.push_back({i});
    windows.push_back(std::vector<int32_t>(20, count));
  }
  const WindowPlan plan = plan_windows(windows, {}, 20);
  Log log(Verbosity::quiet);
  for (const test::NamedBackend& named : test::gpu_backends()) {
    const auto backend = named.make();
    const MemoryPlan memory =
        plan_memory({checkpoint, config, *backend}, plan, all_layers(config), {});
    const CollectOptions options{.max_memory = {memory.bytes}, .batch_rows = 20};
    collect_magnitudes({checkpoint, config, *backend}, windows, log, options);
    CHECK(backend->memory()->peak == memory.bytes);
  }
}

}  // namespace fp8kv
