#include <map>

#include <doctest/doctest.h>

#include "backend/cpu_backend.h"
#include "io/architectures.h"
#include "model/generate.h"
#include "support/expect_error.h"
#include "support/reference_model.h"
#include "support/temp_dir.h"
#include "support/tiny_checkpoint.h"

using namespace fp8kv;
using test::TempDir;

namespace {

struct Made {
  std::vector<int32_t> ids;
  FinishReason reason = FinishReason::length;
};

struct World {
  TempDir folder;
  std::optional<Checkpoint> checkpoint;
  ModelConfig config;
  std::unique_ptr<Backend> backend = make_cpu_backend(2);

  World() {
    test::write_tiny_checkpoint(folder / "m", test::tiny_config());
    checkpoint = Checkpoint::open(folder / "m");
    config = read_model_config(*checkpoint);
  }

  std::vector<Made> run(const std::vector<std::vector<int32_t>>& prompts,
                        const GenerationOptions& options, int64_t pages) {
    KvCache cache(*backend, config, {DType::f32, config.n_layers, pages}, nullptr);
    std::vector<Made> made(prompts.size());
    generate(*checkpoint, config, *backend, cache, prompts, options,
             {[&](size_t prompt, int32_t id) { made[prompt].ids.push_back(id); },
              [&](size_t prompt, FinishReason reason) { made[prompt].reason = reason; }});
    CHECK(cache.free_pages() == pages);
    return made;
  }
};

const std::vector<std::vector<int32_t>> kPrompts = {
    {1, 2, 3}, {40, 41, 42, 43, 44, 45, 46}, {9}, {20, 21, 22, 23}, {60, 7}};

}  // namespace

TEST_CASE("generate: prompts together give what an independent forward pass gives each alone") {
  World world;
  GenerationOptions options;
  options.max_new_tokens = 12;
  const auto made = world.run(kPrompts, options, 5);
  for (size_t i = 0; i < kPrompts.size(); ++i) {
    CHECK(made[i].ids == test::reference_greedy(*world.checkpoint, world.config, kPrompts[i], 12));
    CHECK(made[i].reason == FinishReason::length);
  }
}

TEST_CASE("generate: with pages for two at a time the others wait their turn") {
  World world;
  GenerationOptions options;
  options.max_new_tokens = 12;
  const auto together = world.run(kPrompts, options, 5);
  const auto by_twos = world.run(kPrompts, options, 2);
  for (size_t i = 0; i < kPrompts.size(); ++i) CHECK(by_twos[i].ids == together[i].ids);
}

TEST_CASE("generate: a long prompt in chunks gives the same as in one") {
  World world;
  std::vector<int32_t> prompt;
  for (int i = 0; i < 100; ++i) prompt.push_back((i * 37 + 11) % 64);
  GenerationOptions options;
  options.max_new_tokens = 8;
  const auto whole = world.run({prompt}, options, 2);
  options.chunk_rows = 16;
  CHECK(world.run({prompt}, options, 2)[0].ids == whole[0].ids);
}

TEST_CASE("generate: a stop id ends a sequence and is not part of it") {
  World world;
  GenerationOptions options;
  options.max_new_tokens = 12;
  const std::vector<int32_t> free_run = world.run({kPrompts[1]}, options, 1)[0].ids;
  options.stop_ids = {free_run[4]};
  size_t first = 0;
  while (free_run[first] != free_run[4]) ++first;
  const Made made = world.run({kPrompts[1]}, options, 1)[0];
  CHECK(made.reason == FinishReason::stop);
  CHECK(made.ids == std::vector<int32_t>(free_run.begin(), free_run.begin() + first));
}

TEST_CASE("generate: a sequence ends where the model's context does") {
  World world;
  std::vector<int32_t> prompt(120, 5);
  GenerationOptions options;
  options.max_new_tokens = 100;
  const Made made = world.run({prompt}, options, 2)[0];
  CHECK(made.reason == FinishReason::context);
  // 120 + 8 tokens fill the context; the last logits give one more that is not cached.
  CHECK(made.ids.size() == 9);
}

TEST_CASE("generate: refuses an empty prompt, one beyond the context and one beyond the cache") {
  World world;
  const GenerationOptions options;
  CHECK(test::error_of([&] { world.run({{}}, options, 1); }) == "prompt 0 has no tokens");
  CHECK(test::error_of([&] { world.run({std::vector<int32_t>(128, 1)}, options, 4); }) ==
        "prompt 0 has 128 tokens, the model's context is 128 (max_position_embeddings)");
  CHECK(test::error_of([&] { world.run({std::vector<int32_t>(100, 1)}, options, 1); },
                       ErrorKind::resource) ==
        "prompt 0 needs 2 pages of the KV cache, which has 1");
}
