#include <algorithm>
#include <cmath>
#include <numeric>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "calib/collect.h"
#include "checkpoint/model/read_model_config.h"
#include "data/dataset.h"
#include "json/json.h"
#include "support/expect_error.h"
#include "support/models/goldens.h"
#include "support/models/streamed_model.h"
#include "support/models/tiny_checkpoint.h"
#include "support/models/windows.h"
#include "support/reference/reference_model.h"
#include "support/skip.h"
#include "support/temp_dir.h"

using namespace fp8kv;
using test::TempDir;

namespace {

Log quiet_log() {
  return Log(Verbosity::quiet);
}

std::vector<std::vector<int32_t>> windows_of(const std::vector<size_t>& lengths) {
  return test::windows_of(lengths, 3);
}

// Error of f32 against double. A sum of n products is off by sqrt(n) * 2^-24 if its roundings are
// independent, and everything after it too.
// In stories260K, the largest model here, sums have up to 172 products. The last of 5 layers comes
// after 7 * 5 such sums: sqrt(172) * sqrt(35) * 2^-24 = 4.6e-6. The tolerance is twice that.
constexpr double kTolerance = 1e-5;

double relative(double actual, double expected) {
  return std::abs(actual - expected) / std::abs(expected);
}

}  // namespace

TEST_CASE("collect: amax of Q, K and V equals an independent forward pass over each window alone") {
  const TempDir folder;
  test::write_tiny_checkpoint(folder / "m", test::tiny_config());
  const Checkpoint checkpoint = Checkpoint::open(folder / "m");
  const ModelConfig config = read_model_config(checkpoint);
  const auto windows = windows_of({70, 1, 33, 64});
  const auto backend = make_cpu_backend(2);
  Log log = quiet_log();
  const auto layers = collect_magnitudes({checkpoint, config, *backend}, windows, log);
  REQUIRE(layers.size() == 2);
  std::vector<test::ReferenceRun> runs;
  for (const auto& ids : windows) runs.push_back(test::reference_forward(checkpoint, config, ids));
  for (size_t layer = 0; layer < 2; ++layer) {
    for (size_t head = 0; head < 2; ++head) {
      double k = 0, v = 0, q = 0;
      for (const auto& run : runs) {
        k = std::max(k, run.k_amax[layer][head]);
        v = std::max(v, run.v_amax[layer][head]);
        q = std::max(q, run.q_amax[layer][head]);
      }
      CHECK(relative(layers[layer].k[head].amax, k) < kTolerance);
      CHECK(relative(layers[layer].v[head].amax, v) < kTolerance);
      CHECK(relative(layers[layer].q[head].amax, q) < kTolerance);
    }
  }
}

TEST_CASE("collect: amax of K and V is that of transformers' cache, for every golden model") {
  for (const char* name : test::kGoldens) {
    CAPTURE(name);
    const auto [folder, golden, ids] = test::golden(name);
    const Checkpoint checkpoint = Checkpoint::open(folder);
    const ModelConfig config = read_model_config(checkpoint);
    if (config.dtype != DType::f32) continue;  // transformers rounds nothing in these goldens
    const auto backend = make_cpu_backend(2);
    Log log = quiet_log();
    const auto layers = collect_magnitudes({checkpoint, config, *backend}, {ids}, log);
    const Json k = golden.at("k_amax"), v = golden.at("v_amax");
    REQUIRE(layers.size() == k.size());
    for (size_t layer = 0; layer < layers.size(); ++layer) {
      REQUIRE(layers[layer].k.size() == k[layer].size());
      for (size_t head = 0; head < layers[layer].k.size(); ++head) {
        CHECK(relative(layers[layer].k[head].amax, k[layer][head].as_double()) < kTolerance);
        CHECK(relative(layers[layer].v[head].amax, v[layer][head].as_double()) < kTolerance);
      }
    }
  }
}

TEST_CASE("collect: every value of every token is counted once, and padding never") {
  const TempDir folder;
  test::write_tiny_checkpoint(folder / "m", test::tiny_config());
  const Checkpoint checkpoint = Checkpoint::open(folder / "m");
  const ModelConfig config = read_model_config(checkpoint);
  const auto backend = make_cpu_backend(2);
  Log log = quiet_log();
  const auto layers =
      collect_magnitudes({checkpoint, config, *backend}, windows_of({5, 128, 1}), log);
  const uint64_t tokens = 5 + 128 + 1;
  for (const LayerMagnitudes& layer : layers) {
    for (const auto* heads : {&layer.k, &layer.v}) {
      for (const MagnitudeCounts& head : *heads) {
        const uint64_t counted = std::accumulate(head.bins.begin(), head.bins.end(), uint64_t{0});
        CHECK(counted == tokens * static_cast<uint64_t>(config.head_dim()));
        // amax must be in the highest bin that is not empty.
        const auto last =
            std::find_if(head.bins.rbegin(), head.bins.rend(), [](uint64_t n) { return n > 0; });
        const auto bin = static_cast<int>(head.bins.rend() - last) - 1;
        CHECK(magnitude_bin(float_bits(head.amax)) == bin);
      }
    }
  }
}

TEST_CASE("collect: the same bits for any number of threads and any size of batches") {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    const test::StreamedModel model(dtype);
    Log log = quiet_log();
    const auto windows = windows_of({100, 3, 90, 17, 128, 128, 64});
    const auto collect = [&](int threads, int64_t batch_rows) {
      const auto backend = make_cpu_backend(threads);
      return collect_magnitudes({model.checkpoint, model.config, *backend}, windows, log,
                                {.batch_rows = batch_rows});
    };
    const auto first = collect(1, kBatchRows);
    for (const int threads : {1, 2, 3, 4}) {
      CAPTURE(threads);
      CHECK(test::same_bits(collect(threads, kBatchRows), first));
      CHECK(test::same_bits(collect(threads, 130), first));  // batches of several windows, or one
    }
  }
}

TEST_CASE("collect: amax after a part of the windows is that of the part alone") {
  const test::StreamedModel model(DType::f32);
  Log log = quiet_log();
  const auto windows = windows_of({100, 3, 90, 17, 128, 128, 64});
  const auto backend = make_cpu_backend(2);
  const auto run = [&](size_t count, const TextParts& parts, int64_t batch_rows) {
    return collect({model.checkpoint, model.config, *backend},
                   {windows.begin(), windows.begin() + static_cast<ptrdiff_t>(count)}, log,
                   {.batch_rows = batch_rows, .parts = parts});
  };
  const CollectedMagnitudes whole = run(7, {}, kBatchRows);
  CHECK(whole.parts == AmaxParts());
  for (const TextParts& counts : {TextParts{1, 4, 7}, TextParts{0, 2, 2}}) {
    for (const int64_t batch_rows : {int64_t{130}, kBatchRows}) {
      const CollectedMagnitudes found = run(7, counts, batch_rows);
      CHECK(test::same_bits(found.layers, whole.layers));
      for (size_t part = 0; part < kTextParts; ++part) {
        CAPTURE(counts[part]);
        if (counts[part] == 0) {
          CHECK(found.parts[part] == AmaxAfter());
          continue;
        }
        const CollectedMagnitudes alone = run(counts[part], {}, kBatchRows);
        CHECK(found.parts[part].tokens == tokens_in(std::span(windows).first(counts[part])));
        REQUIRE(found.parts[part].layers.size() == alone.layers.size());
        for (size_t layer = 0; layer < alone.layers.size(); ++layer) {
          CHECK(found.parts[part].layers[layer] == layer_amax(alone.layers[layer]));
        }
      }
    }
  }
}

TEST_CASE("collect: NaN in a weight stops it, naming layer and head") {
  const TempDir folder;
  const test::TinyConfig shape = test::tiny_config();
  test::write_tiny_checkpoint(folder / "m", shape);
  std::vector<test::TinyTensor> tensors = test::tiny_tensors(shape);
  for (test::TinyTensor& tensor : tensors) {
    // Row 9 of K in layer 1 belongs to KV head 1.
    if (tensor.name == "model.layers.1.self_attn.k_proj.weight") {
      tensor.values[9 * 32 + 5] = std::numeric_limits<float>::quiet_NaN();
    }
  }
  test::write_tiny_weights(folder / "m", tensors, DType::f32);
  const Checkpoint checkpoint = Checkpoint::open(folder / "m");
  const ModelConfig config = read_model_config(checkpoint);
  const auto backend = make_cpu_backend(1);
  Log log = quiet_log();
  // The NaN reaches one element and its RoPE partner: 2 values in each of 10 tokens.
  CHECK(test::error_of([&] {
          collect_magnitudes({checkpoint, config, *backend}, windows_of({10}), log);
        }) == "layer 1, KV head 1: K has 20 values that are NaN or infinite");
}

TEST_CASE("collect: amax of stories260K equals the float64 reference") {
  for (const char* text : {"tinystories_train_head", "tinyshakespeare"}) {
    const auto reference = test::shared_data(cat("reference/stories260K-hf-f32.", text, ".json"));
    const auto folder = test::shared_data("models/stories260K-hf-f32");
    if (!reference || !folder) return;
    const Json golden = Json::read(*reference);
    const auto windows = test::windows_of(golden);
    const Checkpoint checkpoint = Checkpoint::open(*folder);
    const ModelConfig config = read_model_config(checkpoint);
    const auto backend = make_cpu_backend(2);
    Log log = quiet_log();
    const auto layers = collect_magnitudes({checkpoint, config, *backend}, windows, log);
    const Json k = golden.at("amax_per_head").at("k_post_rope");
    const Json v = golden.at("amax_per_head").at("v");
    REQUIRE(windows.size() > 1);
    REQUIRE(layers.size() == static_cast<size_t>(config.n_layers()));
    CHECK(k.size() == layers.size());
    CHECK(v.size() == layers.size());
    for (size_t layer = 0; layer < layers.size(); ++layer) {
      REQUIRE(k[layer].size() == layers[layer].k.size());
      REQUIRE(v[layer].size() == layers[layer].v.size());
      for (size_t head = 0; head < layers[layer].k.size(); ++head) {
        CHECK(relative(layers[layer].k[head].amax, k[layer][head].as_double()) < kTolerance);
        CHECK(relative(layers[layer].v[head].amax, v[layer][head].as_double()) < kTolerance);
      }
    }
  }
}
