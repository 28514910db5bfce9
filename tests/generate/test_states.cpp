// Generation with models in which most layers keep a state.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "base/rng.h"
#include "generate/generate.h"
#include "support/backends/cpu.h"
#include "support/backends/logit_tap.h"
#include "support/models/family_model.h"

namespace fp8kv {
namespace {

constexpr const char* kModels[] = {"qwen3-next", "qwen3.5",        "qwen3.5-moe-tied",
                                   "granite4",   "granite4-dense", "nemotron-h",
                                   "bamba",      "falcon-h1",      "falcon-h1-bias"};

std::vector<int32_t> ids_from(int seed, int count) {
  std::vector<int32_t> ids;
  for (int i = 0; i < count; ++i) ids.push_back(3 + (i * 37 + seed) % 70);
  return ids;
}

struct World {
  explicit World(const char* name) : model(name) {}

  test::LogitTap::Rows logits_of(const std::vector<Request>& requests,
                                 const GenerationOptions& options, int64_t pages) {
    test::LogitTap tap(*backend);
    stats = generate(model.checkpoint, model.config, tap,
                     {{DType::f8_e4m3, pages},
                      nullptr,
                      requests,
                      options,
                      {[](size_t, int32_t) {}, [](size_t, FinishReason) {}}});
    return tap.rows;
  }

  test::FamilyModel model;
  std::unique_ptr<Backend> backend = make_cpu_backend(3);
  GenerationStats stats;
};

TEST_CASE("states: whatever comes in whatever steps, everybody gets what they get alone") {
  for (const char* name : kModels) {
    CAPTURE(std::string(name));
    World world(name);
    Rng rng(3);
    const auto below = [&](uint64_t n) { return static_cast<int>(rng.next() % n); };
    for (int round = 0; round < 4; ++round) {
      CAPTURE(round);
      std::vector<Request> requests;
      for (int i = 0; i < 9; ++i) {
        const auto seed = static_cast<uint64_t>(100 * round + i);
        requests.push_back(
            {ids_from(below(3), 1 + below(40)), 1 + below(12), {1.5f, 0, 1.0f, seed}});
      }
      // With few slots, several sequences use the same state slot in turn.
      const GenerationOptions options{.max_batch = 1 + below(4), .chunk_rows = 1 + below(30)};
      const auto together = world.logits_of(requests, options, 2 + below(4));
      size_t tokens = 0;
      for (const Request& request : requests) {
        for (const auto& [key, row] : world.logits_of({request}, {}, 1)) {
          const bool alone = together.contains(key) && row == together.at(key);
          CHECK(alone);
          ++tokens;
        }
      }
      CHECK(tokens == together.size());
    }
  }
}

TEST_CASE("states: prompts that begin alike share no pages, since a state has none") {
  World world("qwen3.5");
  world.model.config.max_seq_len = 300;
  const std::vector<Request> requests = {{ids_from(1, 130), 2}, {ids_from(1, 140), 2}};
  world.logits_of(requests, {.max_batch = 2}, 6);
  CHECK(world.stats.prompt_pages == 3 + 3);
  CHECK(world.stats.shared_pages == 0);
}

}  // namespace
}  // namespace fp8kv
