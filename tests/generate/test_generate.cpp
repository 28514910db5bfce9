#include <map>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "base/rng.h"
#include "checkpoint/model/read_model_config.h"
#include "generate/generate.h"
#include "support/backends/cpu.h"
#include "support/backends/logit_tap.h"
#include "support/expect_error.h"
#include "support/models/tiny_checkpoint.h"
#include "support/reference/reference_model.h"
#include "support/temp_dir.h"

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

  std::vector<Made> run(const std::vector<Request>& requests, const GenerationOptions& options,
                        int64_t pages, DType dtype = DType::f32) {
    std::vector<Made> made(requests.size());
    stats = generate(*checkpoint, config, *backend,
                     {{dtype, pages},
                      nullptr,
                      requests,
                      options,
                      {[&](size_t prompt, int32_t id) { made[prompt].ids.push_back(id); },
                       [&](size_t prompt, FinishReason reason) {
                         made[prompt].reason = reason;
                         finished.push_back(prompt);
                       }}});
    return made;
  }

  // The logits of every drawn token, tapped at the backend.
  test::LogitTap::Rows logits_of(const std::vector<Request>& requests,
                                 const GenerationOptions& options, int64_t pages, DType dtype) {
    test::LogitTap tap(*backend);
    stats = generate(*checkpoint, config, tap,
                     {{dtype, pages},
                      nullptr,
                      requests,
                      options,
                      {[](size_t, int32_t) {}, [](size_t, FinishReason) {}}});
    return tap.rows;
  }

  GenerationStats stats;
  std::vector<size_t> finished;  // numbers of prompts, in the order they finished
};

const std::vector<std::vector<int32_t>> kPrompts = {
    {1, 2, 3}, {40, 41, 42, 43, 44, 45, 46}, {9}, {20, 21, 22, 23}, {60, 7}};

std::vector<Request> requests_of(const std::vector<std::vector<int32_t>>& prompts,
                                 int64_t max_new_tokens) {
  std::vector<Request> requests;
  for (const auto& prompt : prompts) requests.push_back({prompt, max_new_tokens});
  return requests;
}

std::vector<int32_t> ids_from(int seed, int count) {
  std::vector<int32_t> ids;
  for (int i = 0; i < count; ++i) ids.push_back((i * 37 + seed) % 64);
  return ids;
}

std::vector<int32_t> joined(std::vector<int32_t> a, const std::vector<int32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

TEST_CASE("generate: prompts together give what an independent forward pass gives each alone") {
  World world;
  const auto made = world.run(requests_of(kPrompts, 12), {}, 5);
  for (size_t i = 0; i < kPrompts.size(); ++i) {
    CHECK(made[i].ids == test::reference_greedy(*world.checkpoint, world.config, kPrompts[i], 12));
    CHECK(made[i].reason == FinishReason::length);
  }
}

TEST_CASE("generate: a request's own stop ids, or whoever is asked, end it alone") {
  World world;
  const auto whole = world.run(requests_of(kPrompts, 12), {}, 5);
  std::vector<Request> requests = requests_of(kPrompts, 12);
  const int32_t stop = whole[1].ids[4];
  requests[1].stop_ids = {63, stop};
  const auto first = std::find(whole[1].ids.begin(), whole[1].ids.end(), stop);
  const auto ended = world.run(requests, {}, 5);
  CHECK(ended[1].ids == std::vector<int32_t>(whole[1].ids.begin(), first));
  CHECK(ended[1].reason == FinishReason::stop);
  for (const size_t other : {0, 2, 3, 4}) {
    CHECK(ended[other].ids == whole[other].ids);
    CHECK(ended[other].reason == FinishReason::length);
  }
  std::vector<Made> made(kPrompts.size());
  generate(*world.checkpoint, world.config, *world.backend,
           {{DType::f32, 5},
            nullptr,
            requests_of(kPrompts, 12),
            {},
            {[&](size_t prompt, int32_t id) { made[prompt].ids.push_back(id); },
             [&](size_t prompt, FinishReason reason) { made[prompt].reason = reason; },
             [&](size_t prompt) { return prompt == 2 && made[2].ids.size() == 3; }}});
  for (size_t i = 0; i < kPrompts.size(); ++i) {
    auto expected = whole[i].ids;
    if (i == 2) expected.resize(3);  // the token after which ends() returned true stays
    CHECK(made[i].ids == expected);
    CHECK(made[i].reason == (i == 2 ? FinishReason::stop : FinishReason::length));
  }
}

TEST_CASE("generate: with pages or places for two at a time the others wait their turn") {
  World world;
  const auto together = world.run(requests_of(kPrompts, 12), {}, 5);
  const auto by_pages = world.run(requests_of(kPrompts, 12), {}, 2);
  const auto by_places = world.run(requests_of(kPrompts, 12), {.max_batch = 2}, 5);
  for (size_t i = 0; i < kPrompts.size(); ++i) {
    CHECK(by_pages[i].ids == together[i].ids);
    CHECK(by_places[i].ids == together[i].ids);
  }
}

TEST_CASE("generate: who came first is not overtaken by one that needs fewer pages") {
  World world;
  // The second prompt needs both pages. The third would fit beside the first.
  world.run({{ids_from(1, 3), 20}, {ids_from(2, 80), 4}, {ids_from(3, 3), 2}}, {}, 2);
  CHECK(world.finished == std::vector<size_t>{0, 1, 2});
}

TEST_CASE("generate: a long prompt in chunks, beside one that decodes, gives the same as in one") {
  World world;
  const std::vector<Request> requests = {{{1, 2, 3}, 20}, {ids_from(11, 100), 8}};
  const auto whole = world.run(requests, {}, 3);
  const auto in_chunks = world.run(requests, {.chunk_rows = 16}, 3);
  for (size_t i = 0; i < 2; ++i) CHECK(in_chunks[i].ids == whole[i].ids);
  // Both prompts finished in both runs.
  CHECK(world.finished.size() == 4);
}

TEST_CASE("generate: what a prompt gets does not depend on its neighbours, bit for bit") {
  World world;
  for (const CpuIsa isa : test::available_isas()) {
    world.backend = make_cpu_backend(3, isa);
    for (const DType dtype : {DType::f32, DType::f8_e4m3}) {
      std::vector<Request> requests;
      for (int i = 0; i < 30; ++i) {
        requests.push_back({ids_from(i, 1 + 4 * i), 5, {1.0f, 0, 1.0f, static_cast<uint64_t>(i)}});
      }
      const auto together = world.logits_of(requests, {}, 120, dtype);
      const bool same =
          world.logits_of(requests, {.max_batch = 3, .chunk_rows = 10}, 9, dtype) == together;
      CHECK(same);
      for (const size_t i : {size_t{0}, size_t{7}, size_t{29}}) {
        for (const auto& [key, row] : world.logits_of({requests[i]}, {}, 3, dtype)) {
          const bool alone = row == together.at(key);
          CHECK(alone);
        }
      }
    }
  }
}

TEST_CASE("generate: prompts that begin alike share pages and get what they get without") {
  World world;
  world.config.max_seq_len = 400;
  const std::vector<int32_t> common = ids_from(5, 150);
  const std::vector<Request> requests = {
      {joined(common, {1, 2, 3}), 6, {2.0f, 0, 1.0f, 1}},
      {joined(common, {9}), 6, {2.0f, 0, 1.0f, 2}},
      {ids_from(6, 70), 6, {2.0f, 0, 1.0f, 3}},                           // shares nothing
      {joined(ids_from(5, 64), ids_from(8, 64)), 6, {2.0f, 0, 1.0f, 4}},  // shares one page
      {joined(ids_from(5, 64), ids_from(8, 64)),
       6,
       {2.0f, 0, 1.0f, 5}},  // repeats the prompt before
      {ids_from(5, 129), 6, {2.0f, 0, 1.0f, 6}},
  };
  for (const DType dtype : {DType::f32, DType::f8_e4m3}) {
    const auto apart = world.logits_of(requests, {.share_prefixes = false}, 30, dtype);
    CHECK(world.stats.shared_pages == 0);
    for (const int64_t pages : {30, 4}) {  // with 4, shared pages are dropped and computed again
      for (const int64_t chunk : {512, 50}) {
        const bool same = world.logits_of(requests, {.chunk_rows = chunk}, pages, dtype) == apart;
        CHECK(same);
        if (pages < 30) continue;
        // Prompts 1, 3, 4 and 5 share pages. Prompt 4 repeats 3 but shares only one page: its other
        // page ends with the prompt, whose last token is always computed.
        CHECK(world.stats.shared_pages == 2 + 1 + 1 + 2);
        CHECK(world.stats.prompt_pages == 3 + 3 + 2 + 2 + 2 + 3);
      }
    }
  }
}

TEST_CASE("generate: whatever comes in whatever room, everybody gets what they get alone") {
  World world;
  Rng rng(1);
  const auto below = [&](uint64_t n) { return static_cast<int>(rng.next() % n); };
  for (int round = 0; round < 12; ++round) {
    CAPTURE(round);
    std::vector<Request> requests;
    for (int i = 0; i < 12; ++i) {
      // One of three beginnings, cut anywhere, and one of two endings.
      std::vector<int32_t> prompt = ids_from(below(3), 1 + below(100));
      prompt = joined(std::move(prompt), ids_from(40 + below(2), below(20)));
      const auto seed = static_cast<uint64_t>(1000 * round + i);
      requests.push_back({prompt, 1 + below(12), {1.5f, 0, 1.0f, seed}});
    }
    const GenerationOptions options{.max_batch = 1 + below(6), .chunk_rows = 1 + below(90)};
    const auto together = world.logits_of(requests, options, 2 + below(6), DType::f8_e4m3);
    CHECK(world.stats.requests == requests.size());
    size_t tokens = 0;
    for (const Request& request : requests) {
      for (const auto& [key, row] : world.logits_of({request}, {}, 2, DType::f8_e4m3)) {
        const bool alone = together.contains(key) && row == together.at(key);
        CHECK(alone);
        ++tokens;
      }
    }
    CHECK(tokens == together.size());
  }
}

TEST_CASE("generate: prompts may come one by one, and the next is waited for only when idle") {
  World world;
  Generator generator(*world.checkpoint, world.config, *world.backend, {});
  KvCache cache(*world.backend, world.config, {DType::f32, 6, 0}, nullptr);
  std::vector<bool> waits;
  std::vector<std::vector<int32_t>> made(3);
  size_t given = 0;
  const auto stats = generator.run(cache,
                                   [&](bool wait) -> std::optional<Request> {
                                     waits.push_back(wait);
                                     // The second prompt comes during the first, the third when
                                     // both are done.
                                     const bool comes =
                                         given == 0 || (given == 1 && made[0].size() == 3) || wait;
                                     if (!comes || given == 3) return std::nullopt;
                                     return Request{kPrompts[given++], 6};
                                   },
                                   {[&](size_t prompt, int32_t id) { made[prompt].push_back(id); },
                                    [](size_t, FinishReason) {}});
  CHECK(stats.requests == 3);
  CHECK(waits.front());
  CHECK_FALSE(waits[1]);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(made[i] == test::reference_greedy(*world.checkpoint, world.config, kPrompts[i], 6));
  }
}

TEST_CASE("generate: a stop id ends a sequence and is not part of it") {
  World world;
  GenerationOptions options;
  const std::vector<int32_t> free_run = world.run({{kPrompts[1], 12}}, options, 1)[0].ids;
  options.stop_ids = {free_run[4]};
  size_t first = 0;
  while (free_run[first] != free_run[4]) ++first;
  const Made made = world.run({{kPrompts[1], 12}}, options, 1)[0];
  CHECK(made.reason == FinishReason::stop);
  CHECK(made.ids == std::vector<int32_t>(free_run.begin(), free_run.begin() + first));
}

TEST_CASE("generate: a sequence ends where the model's context does") {
  World world;
  const Made made = world.run({{std::vector<int32_t>(120, 5), 100}}, {}, 2)[0];
  CHECK(made.reason == FinishReason::context);
  // 120 + 8 tokens fill the context. The last logits give a ninth token, which is not cached.
  CHECK(made.ids.size() == 9);
}

TEST_CASE("generate: refuses an empty prompt, one beyond the context and one beyond the cache") {
  World world;
  CHECK(test::error_of([&] { world.run({{{}}}, {}, 1); }) == "prompt 0 has no tokens");
  CHECK(test::error_of([&] { world.run({{std::vector<int32_t>(128, 1)}}, {}, 4); }) ==
        "prompt 0 has 128 tokens, the model's context is 128 (max_position_embeddings)");
  CHECK(test::error_of([&] { world.run({{std::vector<int32_t>(100, 1)}}, {}, 1); },
                       ErrorKind::resource) ==
        "prompt 0 needs 2 pages of the KV cache, which has 1");
}
