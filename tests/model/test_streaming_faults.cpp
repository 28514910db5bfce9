// A calibration on a device ends when a file or the device fails, and goes on from there.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"
#include "base/text.h"
#include "calib/collect.h"
#include "support/backends/failing_backend.h"
#include "support/backends/gpu_backends.h"
#include "support/expect_error.h"
#include "support/models/streamed_model.h"
#include "support/models/streamed_plans.h"
#include "support/sanitizers.h"

namespace fp8kv {
namespace {

using test::all_layers;
using test::bounds_for;
using test::Interleaved;

// Streams every layer, as a calibration does.
void stream_all(const test::StreamedModel& model, Backend& backend, const StreamOptions& options) {
  const std::vector<StreamedLayer> layers = all_layers(model.config);
  WeightStream weights(model.checkpoint, model.config, backend, layers, options);
  for (size_t i = 0; i < layers.size(); ++i) {
    weights.begin();
    weights.end();
  }
}

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
