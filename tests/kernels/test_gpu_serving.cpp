// Drawing tokens, recorded steps and batches of sequences on the GPU kernels.
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "base/rng.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/model/read_model_config.h"
#include "generate/generate.h"
#include "generate/sampling.h"
#include "support/backends/gpu_backends.h"
#include "support/backends/logit_tap.h"
#include "support/expect_error.h"
#include "support/models/tiny_checkpoint.h"
#include "support/skip.h"
#include "support/temp_dir.h"
#include "text/tokenizer.h"

namespace fp8kv {
namespace {

using test::put;

std::vector<int32_t> ids_of(Backend& backend, const TensorView& view) {
  std::vector<int32_t> ids(static_cast<size_t>(view.shape.elements()));
  backend.download(view, std::as_writable_bytes(std::span(ids)));
  return ids;
}

// Rows of logits, many of them equal, with -infinity, -0 and a subnormal number here and there.
std::vector<float> awkward_logits(int64_t rows, int64_t width, Rng& rng) {
  std::vector<float> logits;
  for (int64_t i = 0; i < rows * width; ++i) {
    const uint64_t kind = rng.next() % 64;
    const float plain = static_cast<float>(static_cast<int>(rng.uniform() * 40) - 20) / 4;
    logits.push_back(kind == 0   ? -INFINITY
                     : kind == 1 ? -0.0f
                     : kind == 2 ? 1e-41f
                     : kind < 20 ? static_cast<float>(rng.uniform() * 8 - 4)
                                 : plain);
  }
  return logits;
}

std::vector<SamplingOptions> every_sampling(Rng& rng) {
  std::vector<SamplingOptions> rows;
  for (const float temperature : {0.0f, 0.7f, 2.0f, 1e-30f}) {
    for (const int32_t top_k : {0, 1, 5, 60, 100000}) {
      for (const float top_p : {1.0f, 0.9f, 0.3f, 1e-6f}) {
        rows.push_back({temperature, top_k, top_p, rng.next()});
      }
    }
  }
  return rows;
}

std::vector<int32_t> draw(Backend& backend, const std::vector<float>& logits,
                          const std::vector<SamplingOptions>& rows,
                          const std::vector<int32_t>& positions) {
  const auto n = static_cast<int64_t>(rows.size());
  const auto width = static_cast<int64_t>(logits.size()) / n;
  const Tensor values = put(backend, logits, DType::f32, Shape{n, width});
  const Tensor at = put(backend, positions, Shape{n});
  SamplingRows sampling(backend, n);
  sampling.upload(rows);
  const Tensor ids = backend.allocate(DType::i32, Shape{n});
  backend.sample(values.view(), sampling.at(at.view()), ids.view());
  return ids_of(backend, ids.view());
}

}  // namespace

TEST_CASE("gpu sample: draws the ids that the CPU draws, whatever the logits and options") {
  const auto cpu = make_cpu_backend(1);
  // A block takes a row, in the same steps for any length.
  for (const int64_t width : {1, 7, 255, 256, 257, 800}) {
    CAPTURE(width);
    Rng rng(static_cast<uint64_t>(width));
    const std::vector<SamplingOptions> rows = every_sampling(rng);
    const auto n = static_cast<int64_t>(rows.size());
    std::vector<float> logits = awkward_logits(n, width, rng);
    std::vector<int32_t> positions;
    for (int64_t i = 0; i < n; ++i) positions.push_back(static_cast<int32_t>(rng.next() >> 40));
    if (width > 7) {
      logits[static_cast<size_t>(3 * width + 5)] = INFINITY;
      logits[static_cast<size_t>(3 * width + 6)] = INFINITY;
      logits[static_cast<size_t>(9 * width + 6)] = std::nanf("");
      logits[static_cast<size_t>(9 * width + 4)] = std::nanf("");
      std::fill_n(logits.begin() + 30 * width, width, -INFINITY);
    }
    const std::vector<int32_t> expected = draw(*cpu, logits, rows, positions);
    if (width > 7) CHECK(expected[9] == -5);
    for (const test::NamedBackend& named : test::gpu_backends()) {
      CAPTURE(named.name);
      CHECK(draw(*named.make(), logits, rows, positions) == expected);
    }
  }
}

TEST_CASE("gpu recording: a replayed op sees what its memory holds by then") {
  for (const test::NamedBackend& named : test::gpu_backends()) {
    CAPTURE(named.name);
    const auto backend = named.make();
    const Tensor table = put(*backend, {1, 2, 3}, DType::f32, Shape{3, 1});
    const Tensor ids = put(*backend, std::vector<int32_t>{0}, Shape{1});
    const Tensor out = backend->allocate(DType::f32, Shape{1, 1});
    if (!backend->can_record()) return;
    backend->embed(table.view(), ids.view(), out.view());  // a device may load its code only now
    const int32_t last = 2;
    backend->copy_in(ids.view(), {reinterpret_cast<const std::byte*>(&last), DType::i32, {1}});
    backend->begin_recording();
    backend->embed(table.view(), ids.view(), out.view());
    const Recording recording = backend->end_recording();
    CHECK(test::get(*backend, out.view())[0] == 1);  // recorded, not run
    for (const int32_t id : {2, 1}) {
      backend->copy_in(ids.view(), {reinterpret_cast<const std::byte*>(&id), DType::i32, {1}});
      backend->replay(recording);
      CHECK(test::get(*backend, out.view())[0] == static_cast<float>(id + 1));
    }
  }
}

namespace {

using Texts = std::vector<std::vector<int32_t>>;

Texts run(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
          const KvCacheOptions& cache, const std::vector<Request>& requests,
          const GenerationOptions& options = {}) {
  Texts texts(requests.size());
  generate(checkpoint, config, backend,
           {cache,
            nullptr,
            requests,
            options,
            {[&](size_t prompt, int32_t id) { texts[prompt].push_back(id); },
             [](size_t, FinishReason) {}}});
  return texts;
}

std::vector<int32_t> ids_from(int seed, int count) {
  std::vector<int32_t> ids;
  for (int i = 0; i < count; ++i) ids.push_back((i * 37 + seed) % 64);
  return ids;
}

}  // namespace

TEST_CASE("gpu generate: a sequence's bits depend on no neighbour, no chunk and no shared page") {
  const test::TempDir dir;
  test::TinyConfig shape = test::tiny_config();
  shape.dtype = DType::bf16;
  shape.head_dim = 64;  // the size of the fast kernels
  shape.max_seq_len = 256;
  test::write_tiny_checkpoint(dir / "model", shape);
  const Checkpoint checkpoint = Checkpoint::open(dir / "model");
  const ModelConfig config = read_model_config(checkpoint);
  std::vector<Request> requests;
  for (int i = 0; i < 4; ++i) {
    requests.push_back({ids_from(i, 1 + 5 * i), 3, {1.0f, 0, 1.0f, static_cast<uint64_t>(i)}});
  }
  requests.push_back({ids_from(1, 66), 3, {1.0f, 0, 1.0f, 50}});
  requests.push_back({ids_from(1, 67), 3, {1.0f, 0, 1.0f, 51}});  // shares a page, leaves 3 rows
  requests.push_back({ids_from(1, 65), 3, {1.0f, 0, 1.0f, 52}});  // shares a page, leaves 1 row
  for (const test::NamedBackend& named : test::gpu_backends()) {
    CAPTURE(named.name);
    const auto backend = named.make();
    const auto logits = [&](const std::vector<Request>& of, const GenerationOptions& options) {
      test::LogitTap tap(*backend);
      run(checkpoint, config, tap, {DType::f8_e4m3, 30}, of, options);
      return tap.rows;
    };
    const auto together = logits(requests, {});
    const bool same = logits(requests, {.chunk_rows = 40, .share_prefixes = false}) == together;
    CHECK(same);
    for (const size_t i : {size_t{1}, size_t{3}}) {
      for (const auto& [key, row] : logits({requests[i]}, {})) {
        const bool alone = row == together.at(key);
        CHECK(alone);
      }
    }
  }
}

TEST_CASE("gpu generate: recorded steps, padded and repeated, draw what steps that are run do") {
  const test::TempDir dir;
  test::write_tiny_checkpoint(dir / "model", test::tiny_config());
  const Checkpoint checkpoint = Checkpoint::open(dir / "model");
  const ModelConfig config = read_model_config(checkpoint);
  // Five sequences, then fewer and fewer: steps of 8, 4, 2 and 1 rows. Lengths cross a page, and
  // later sequences take over pages and places.
  std::vector<Request> requests;
  for (int i = 0; i < 8; ++i) {
    requests.push_back(
        {ids_from(i, 58 + i % 3), 3 + i, {2.0f, 30, 0.9f, static_cast<uint64_t>(i)}});
  }
  const KvCacheOptions cache{DType::f8_e4m3, 10, 0};
  for (const test::NamedBackend& named : test::gpu_backends()) {
    CAPTURE(named.name);
    const auto backend = named.make();
    test::LogitTap not_recorded(*backend);
    CHECK(run(checkpoint, config, *backend, cache, requests, {.max_batch = 5}) ==
          run(checkpoint, config, not_recorded, cache, requests, {.max_batch = 5}));
  }
}

TEST_CASE("gpu generate: several prompts get the CPU's greedy text from every kind of cache") {
  const std::vector<test::NamedBackend> backends = test::gpu_backends();
  if (backends.empty()) return;
  const auto check = [&](const std::filesystem::path& folder, int64_t count,
                         const std::vector<std::string>& prompts,
                         const std::vector<DType>& dtypes) {
    const Checkpoint checkpoint = Checkpoint::open(folder);
    const ModelConfig config = read_model_config(checkpoint);
    const Tokenizer tokenizer = Tokenizer::load(folder / "tokenizer.json");
    std::vector<Request> requests;
    for (const std::string& prompt : prompts) {
      requests.push_back({tokenizer.encode(prompt, true), count});
    }
    const auto cpu = make_cpu_backend(1);
    for (const DType dtype : dtypes) {
      CAPTURE(std::string(dtype_name(dtype)));
      const KvCacheOptions cache{dtype, 4, 0};
      const Texts expected = run(checkpoint, config, *cpu, cache, requests);
      const auto backend = backends.front().make();
      CHECK(run(checkpoint, config, *backend, cache, requests) == expected);
    }
  };
  // A step of prompts, and one that reads what the first stored; the small model takes more such
  // steps.
  check(test::source_dir() / "datasets" / "demo", 2, {"A cow", "The"},
        {DType::f32, DType::f16, DType::bf16, DType::f8_e4m3});
  const auto stories = test::shared_data("models/stories260K-hf-f32");
  if (!stories) return;
  check(*stories, 6, {"Once upon a time", "Lily"},
        {DType::f32, DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e4m3fnuz, DType::f8_e5m2});
}

}  // namespace fp8kv
