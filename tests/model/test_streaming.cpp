// Calibration on a device: layers and activations that come and go while it computes.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "base/error.h"
#include "base/text.h"
#include "calib/windows/memory_plan.h"
#include "support/backends/failing_backend.h"
#include "support/backends/gpu_backends.h"
#include "support/expect_error.h"
#include "support/models/family_model.h"
#include "support/models/streamed_model.h"
#include "support/sanitizers.h"
#include "support/skip.h"

namespace fp8kv {
namespace {

struct Interleaved {
  explicit Interleaved(uint64_t seed) { test::set_interleaving(seed); }
  ~Interleaved() { test::set_interleaving(0); }
};

std::vector<StreamedLayer> all_layers(const ModelConfig& config) {
  std::vector<StreamedLayer> layers;
  for (int64_t i = 0; i + 1 < config.n_layers(); ++i) layers.push_back({i, LayerPart::whole});
  layers.push_back({config.n_layers() - 1, LayerPart::up_to_kv});
  return layers;
}

MemoryPlan plan_for(const test::StreamedModel& model, Backend& backend,
                    std::optional<uint64_t> bound = {}) {
  const WindowPlan windows =
      plan_windows(test::StreamedModel::windows(), {}, test::StreamedModel::kRows);
  return plan_memory(model.checkpoint, model.config, backend, windows, all_layers(model.config),
                     {bound});
}

// No bound, and one bound for each plan that exists.
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
  const auto expected = collect_magnitudes(checkpoint, config, *make_cpu_backend(1), windows, log);
  for (const test::NamedBackend& named : test::gpu_backends()) {
    CAPTURE(named.name);
    const auto found = collect_magnitudes(checkpoint, config, *named.make(), windows, log);
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
          collect_magnitudes(model.checkpoint, model.config, *backend, windows, log, options);
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
        plan_memory(checkpoint, config, *backend, plan, all_layers(config), {});
    const CollectOptions options{.max_memory = {memory.bytes}, .batch_rows = 20};
    collect_magnitudes(checkpoint, config, *backend, windows, log, options);
    CHECK(backend->memory()->peak == memory.bytes);
  }
}

namespace {

// Streams every layer, as a calibration does.
void stream_all(const test::StreamedModel& model, Backend& backend, const StreamOptions& options) {
  const std::vector<StreamedLayer> layers = all_layers(model.config);
  WeightStream weights(model.checkpoint, model.config, backend, layers, options);
  for (size_t i = 0; i < layers.size(); ++i) {
    weights.begin();
    weights.end();
  }
}

}  // namespace

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
            stream_all(model, *backend, {.block_bytes = 64, .direct = false});
          }) == cat("reading tensor '", name, "': '", shard.string(),
                    "': changed while it was read: ends at byte ", location.entry.begin + 5));
    CHECK(test::error_of([&] {
            model.collect(*backend);
          }).starts_with(cat("'", shard.string(), "': changed while it was read: had ")));
  }
}

namespace {

// A file with tensors of a layer, and the tensor that is read first.
struct FirstRead {
  std::string tensor;
  std::filesystem::path file;
};

FirstRead first_read(const Checkpoint& checkpoint, int layer) {
  const std::string prefix = cat("model.layers.", layer, ".");
  const size_t shard = checkpoint.tensors().at(prefix + "mlp.up_proj.weight").shard;
  FirstRead first{"", checkpoint.folder() / checkpoint.shards()[shard].file};
  uint64_t begin = UINT64_MAX;
  for (const auto& [each, location] : checkpoint.tensors()) {
    const bool sooner = location.shard == shard && location.entry.begin < begin;
    if (!sooner || !each.starts_with(prefix)) continue;
    first.tensor = each;
    begin = location.entry.begin;
  }
  return first;
}

}  // namespace

TEST_CASE("streaming: a file that cannot be read any more is named with the tensor") {
  for (const test::NamedBackend& named : test::gpu_backends()) {
    CAPTURE(named.name);
    const test::StreamedModel model;
    const FirstRead first = first_read(model.checkpoint, 1);
    // This process maps nothing at its first addresses, so reading there gives EIO.
    std::filesystem::remove(first.file);
    std::filesystem::create_symlink("/proc/self/mem", first.file);
    const auto backend = named.make();
    CHECK(test::error_of([&] { stream_all(model, *backend, {.readers = 1, .block_bytes = 64}); },
                         ErrorKind::resource) == cat("reading tensor '", first.tensor, "': '",
                                                     first.file.string(),
                                                     "': cannot read: Input/output error"));
  }
}

TEST_CASE("streaming: a file that is gone is named with the tensor") {
  for (const test::NamedBackend& named : test::gpu_backends()) {
    CAPTURE(named.name);
    const test::StreamedModel model;
    const FirstRead first = first_read(model.checkpoint, 1);
    const auto backend = named.make();
    CalibrationState state = model.state(*backend);
    std::filesystem::remove(first.file);
    CHECK(test::error_of([&] { stream_all(model, *backend, {}); }) ==
          cat("reading tensor '", first.tensor, "': '", first.file.string(), "': no such file"));
    CHECK(test::error_of([&] { model.collect(*backend, {.state = &state}); }) ==
          cat("'", first.file.string(), "': changed while it was read: it is no longer there"));
    CHECK(state.saved_layers() == 0);
  }
}

#ifdef FP8KV_TEST_SIM

TEST_CASE("streaming: a lost device ends a run in whatever order copies and ops run") {
  const test::StreamedModel model;
  const test::NamedBackend named = test::gpu_backends().front();
  const auto expected = model.collect(*named.make());
  const auto bounds = bounds_for(model, *named.make());
  const int batches = 5;
  for (const char* kind : {"lost", "fault"}) {
    for (const uint64_t seed : {0, 1, 2}) {
      // How the device fails makes no difference to threads.
      if (test::kThreadSanitizer && std::string_view(kind) == "fault" && seed > 0) continue;
      for (const auto& bound : {bounds.front(), bounds.back()}) {
        const int layer = static_cast<int>(seed);
        const std::string fault = cat(kind, ":activate:", layer * batches + 2);
        CAPTURE(fault);
        CAPTURE(bound.value_or(0));
        const Interleaved interleaved(seed);
        setenv("FP8KV_SIM_FAULT", fault.c_str(), 1);
        auto faulty = named.make();
        unsetenv("FP8KV_SIM_FAULT");
        CalibrationState state = model.state(*faulty);
        const CollectOptions options{
            .max_memory = {bound}, .stream = {.block_bytes = 1000}, .state = &state};
        const std::string error =
            test::error_of([&] { model.collect(*faulty, options); }, ErrorKind::device);
        CHECK(error.starts_with(cat("layer ", layer, ": ")));
        CHECK(state.saved_layers() == layer);
        faulty.reset();  // this neither hangs nor runs copies into freed memory
        const auto backend = named.make();
        CalibrationState found = model.state(*backend);
        CHECK(test::same_bits(model.collect(*backend, {.state = &found}), expected));
        found.remove();
      }
    }
  }
}

#endif

TEST_CASE("streaming: a run that ends in any layer goes on to the same bits") {
  const test::StreamedModel model;
  for (const test::NamedBackend& named : test::gpu_backends()) {
    CAPTURE(named.name);
    const auto expected = model.collect(*named.make());
    const auto bounds = bounds_for(model, *named.make());
    const int batches = 5;
    for (int layer = 0; layer < 3; ++layer) {
      CAPTURE(layer);
      const Interleaved late(1);  // so that a state must wait for its data before it is saved
      test::FailingBackend failing(named.make(), layer * batches + 2);
      CalibrationState state = model.state(failing);
      const CollectOptions spilled{.max_memory = {bounds.back()}, .state = &state};
      CHECK(test::error_of([&] { model.collect(failing, spilled); }, ErrorKind::device) ==
            cat("layer ", layer, ": the device is lost"));
      CHECK(state.saved_layers() == layer);
      // The process that resumes may have more memory.
      const auto backend = named.make();
      CalibrationState found = model.state(*backend);
      CHECK(test::same_bits(model.collect(*backend, {.state = &found}), expected));
      CHECK(found.saved_layers() == 3);  // of four layers: after the last there is the result
      found.remove();
      CHECK(!std::filesystem::exists(found.path()));
    }
  }
}

}  // namespace fp8kv
