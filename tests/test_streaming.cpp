// Calibration on a device: layers and activations that come and go while it computes.
#include <filesystem>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu_backend.h"
#include "base/error.h"
#include "base/text.h"
#include "calib/memory_plan.h"
#include "support/expect_error.h"
#include "support/failing_backend.h"
#include "support/gpu_backends.h"
#include "support/streamed_model.h"

namespace fp8kv {
namespace {

struct Interleaved {
  explicit Interleaved(uint64_t seed) { test::set_interleaving(seed); }
  ~Interleaved() { test::set_interleaving(0); }
};

std::vector<StreamedLayer> all_layers(const ModelConfig& config) {
  std::vector<StreamedLayer> layers;
  for (int64_t i = 0; i + 1 < config.n_layers; ++i) layers.push_back({i, LayerPart::whole});
  layers.push_back({config.n_layers - 1, LayerPart::up_to_kv});
  return layers;
}

MemoryPlan plan_for(const test::StreamedModel& model, Backend& backend,
                    std::optional<uint64_t> bound = {}) {
  const WindowPlan windows =
      plan_windows(test::StreamedModel::windows(), 0, test::StreamedModel::kRows);
  return plan_memory(model.checkpoint, model.config, backend, windows, all_layers(model.config),
                     bound);
}

// Bounds for which the plan is each of those there are, and no bound.
std::vector<std::optional<uint64_t>> bounds_for(const test::StreamedModel& model,
                                                Backend& backend) {
  std::vector<std::optional<uint64_t>> bounds = {std::nullopt};
  for (uint64_t bytes = plan_for(model, backend).bytes;;) {
    bounds.push_back(bytes);
    try {
      bytes = plan_for(model, backend, bytes - 1).bytes;
    } catch (const Error&) {
      return bounds;
    }
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
      CHECK(test::same_bits(model.collect(*backend, {.max_memory = bound}), expected));
      // What is planned is what is taken, but for scratch of ops that not every step needs.
      CHECK(backend->memory()->peak <= plan.bytes);
      if (bound) CHECK(plan.bytes <= *bound);
      CHECK(backend->memory()->in_use <= plan.bytes / 2);
    }
  }
}

TEST_CASE("streaming: the same bits in whatever order copies and ops run") {
  const test::StreamedModel model(DType::bf16);
  for (const test::NamedBackend& named : test::gpu_backends()) {
    CAPTURE(named.name);
    const auto expected = model.collect(*named.make());
    const auto bounds = bounds_for(model, *named.make());
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      CAPTURE(seed);
      const Interleaved interleaved(seed);
      for (const auto& bound : bounds) {
        CAPTURE(bound.value_or(0));
        const CollectOptions options{.max_memory = bound,
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
        // Four layers of sums of at most 48 products in another order, each within 2^-24 of values
        // near 1.
        constexpr double kTolerance = 4 * 48 * 0x1p-24 * 4;
        const double k = expected[layer].k[head].amax, v = expected[layer].v[head].amax;
        CHECK(std::abs(found[layer].k[head].amax - k) <= kTolerance * k);
        CHECK(std::abs(found[layer].v[head].amax - v) <= kTolerance * v);
      }
    }
  }
}

TEST_CASE("streaming: a bound that nothing fits in says the smallest that would do") {
  const test::StreamedModel model;
  for (const test::NamedBackend& named : test::gpu_backends()) {
    const auto backend = named.make();
    const uint64_t least = *bounds_for(model, *backend).back();
    CHECK(test::error_of([&] { model.collect(*backend, {.max_memory = least - 1}); },
                         ErrorKind::usage) ==
          cat("--max-memory ", human_bytes(least - 1),
              ": too little for this model and these windows, which need ", human_bytes(least),
              " of device memory"));
    CHECK(test::help_of([&] { model.collect(*backend, {.max_memory = least - 1}); }) ==
          cat("pass --max-memory ", least, " or more, or a smaller --seq-len"));
    CHECK(backend->memory()->peak == 0);  // nothing was allocated
  }
}

TEST_CASE("streaming: a file that became shorter is named with the tensor") {
  for (const test::NamedBackend& named : test::gpu_backends()) {
    CAPTURE(named.name);
    const test::StreamedModel model;
    const std::string name = "model.layers.2.mlp.up_proj.weight";
    const TensorLocation& location = model.checkpoint.tensors().at(name);
    const std::filesystem::path shard =
        model.checkpoint.folder() / model.checkpoint.shards()[location.shard].file;
    std::filesystem::resize_file(shard, location.entry.begin + 5);
    const auto backend = named.make();
    CHECK(test::error_of([&] {
            model.collect(*backend, {.stream = {.block_bytes = 64, .direct = false}});
          }) == cat("reading tensor '", name, "': '", shard.string(),
                    "': became shorter while it was read"));
  }
}

TEST_CASE("streaming: a run that ends in any layer goes on to the same bits") {
  const test::StreamedModel model;
  for (const test::NamedBackend& named : test::gpu_backends()) {
    CAPTURE(named.name);
    const auto expected = model.collect(*named.make());
    const auto bounds = bounds_for(model, *named.make());
    const int batches = 5;
    for (int layer = 0; layer < 3; ++layer) {
      CAPTURE(layer);
      test::FailingBackend failing(named.make(), layer * batches + 2);
      CalibrationState state = model.state(failing);
      CHECK(test::error_of([&] { model.collect(failing, {.state = &state}); }, ErrorKind::device) ==
            "the device is lost");
      CHECK(state.saved_layers() == layer);
      // Where it is gone on may have less memory.
      const auto backend = named.make();
      CalibrationState found = model.state(*backend);
      const CollectOptions options{.max_memory = bounds.back(), .state = &found};
      CHECK(test::same_bits(model.collect(*backend, options), expected));
      CHECK(found.saved_layers() == 3);  // of four: after the last there is the result
      found.remove();
      CHECK(!std::filesystem::exists(found.path()));
    }
  }
}

}  // namespace fp8kv
