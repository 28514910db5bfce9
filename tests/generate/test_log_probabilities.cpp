// Log-probabilities of generated tokens, and requests with continuations among prompts.
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "checkpoint/model/read_model_config.h"
#include "generate/generate.h"
#include "support/expect_error.h"
#include "support/models/family_model.h"
#include "support/models/tiny_checkpoint.h"
#include "support/reference/reference_model.h"
#include "support/temp_dir.h"

using namespace fp8kv;

namespace {

// The data from all events of one request.
struct Told {
  std::vector<int32_t> ids;
  std::vector<TokenLogProbabilities> logprobs;
  std::vector<ContinuationScore> scores;
};

std::vector<Told> told(const Checkpoint& checkpoint, const ModelConfig& config,
                       const std::vector<Request>& requests, const GenerationOptions& options,
                       int64_t pages) {
  const auto backend = make_cpu_backend(options.threads > 0 ? options.threads : 2);
  std::vector<Told> told(requests.size());
  generate(checkpoint, config, *backend,
           {{DType::f32, pages},
            nullptr,
            requests,
            options,
            {.token = [&](size_t prompt, int32_t id) { told[prompt].ids.push_back(id); },
             .finished = [](size_t, FinishReason) {},
             .logprobs =
                 [&](size_t prompt, const TokenLogProbabilities& found) {
                   told[prompt].logprobs.push_back(found);
                 },
             .scored =
                 [&](size_t prompt, std::span<const ContinuationScore> scores) {
                   told[prompt].scores.assign(scores.begin(), scores.end());
                 }}});
  return told;
}

struct TinyModel {
  test::TempDir folder;
  std::optional<Checkpoint> checkpoint;
  ModelConfig config;

  TinyModel() {
    test::write_tiny_checkpoint(folder / "m", test::tiny_config());
    checkpoint = Checkpoint::open(folder / "m");
    config = read_model_config(*checkpoint);
  }
  std::vector<Told> run(const std::vector<Request>& requests, const GenerationOptions& options = {},
                        int64_t pages = 16) const {
    return told(*checkpoint, config, requests, options, pages);
  }
};

bool same(const TokenLogProbability& a, const TokenLogProbability& b) {
  return a.id == b.id && a.log_probability == b.log_probability;
}

void check_same(const Told& a, const Told& b) {
  CHECK(a.ids == b.ids);
  REQUIRE(a.logprobs.size() == b.logprobs.size());
  for (size_t i = 0; i < a.logprobs.size(); ++i) {
    CHECK(same(a.logprobs[i].token, b.logprobs[i].token));
    CHECK(std::ranges::equal(a.logprobs[i].likeliest, b.logprobs[i].likeliest, same));
  }
  REQUIRE(a.scores.size() == b.scores.size());
  for (size_t i = 0; i < a.scores.size(); ++i) {
    CHECK(a.scores[i].log_probability == b.scores[i].log_probability);
    CHECK(a.scores[i].greedy == b.scores[i].greedy);
  }
}

std::vector<int32_t> ids_from(int seed, int count) {
  std::vector<int32_t> ids;
  for (int i = 0; i < count; ++i) ids.push_back((i * 37 + seed) % 64);
  return ids;
}

Request sampled(std::vector<int32_t> prompt, int64_t tokens, std::optional<int64_t> logprobs,
                uint64_t seed) {
  return {std::move(prompt), tokens, {1.5f, 20, 0.9f, seed}, {}, logprobs, {}};
}

Request scored(const std::vector<int32_t>& prompt,
               const std::vector<std::vector<int32_t>>& continuations) {
  Request request{prompt};
  for (const std::vector<int32_t>& each : continuations) {
    Alternative& whole = request.continuations.emplace_back();
    whole.ids = prompt;
    whole.ids.insert(whole.ids.end(), each.begin(), each.end());
    whole.begin = static_cast<int64_t>(prompt.size());
  }
  return request;
}

// Requests to continue and to score. Some need several pages, and some begin alike.
std::vector<Request> mixed_requests() {
  return {sampled(ids_from(5, 100), 9, 3, 1),
          scored(ids_from(5, 100), {{8, 9, 10}, {8, 11}, ids_from(4, 25)}),
          sampled({1, 2, 3}, 20, std::nullopt, 2),
          scored({40, 41}, {{1}, {2}}),
          scored(ids_from(7, 66), {{1, 2, 3}}),
          sampled(ids_from(7, 66), 4, 0, 3)};
}

}  // namespace

TEST_CASE("log probabilities: the likeliest come first, and the lowest id among equals") {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  const std::vector<float> logits = {1.0f, 3.0f, 0.0f, 3.0f, kNone};
  const double sum = std::log(std::exp(1.0) + 2 * std::exp(3.0) + 1.0);
  const TokenLogProbabilities found = log_probabilities(logits, 2, 3);
  CHECK(found.token.id == 2);
  CHECK(found.token.log_probability == doctest::Approx(-sum).epsilon(1e-15));
  REQUIRE(found.likeliest.size() == 3);
  CHECK(found.likeliest[0].id == 1);
  CHECK(found.likeliest[1].id == 3);
  CHECK(found.likeliest[2].id == 0);
  CHECK(found.likeliest[1].log_probability == doctest::Approx(3 - sum).epsilon(1e-15));
  CHECK(log_probabilities(logits, 0, 0).likeliest.empty());
  CHECK(log_probabilities(logits, 0, 20).likeliest.size() == 5);
  CHECK(log_probabilities(logits, 4, 0).token.log_probability == kNone);
}

TEST_CASE("log probabilities: of large logits nothing overflows, and NaN is refused") {
  CHECK(log_probabilities(std::vector<float>{1000.0f, 1000.0f}, 1, 0).token.log_probability ==
        doctest::Approx(-std::log(2.0)));
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const std::vector<float> logits = {1.0f, bad};
    CHECK(test::error_of([&] { log_probabilities(logits, 0, 1); }) ==
          "a logit is NaN, or none is finite");
  }
}

TEST_CASE("generate: log-probabilities are those of an independent forward pass, not as sampled") {
  const TinyModel model;
  const std::vector<Request> requests = {sampled(ids_from(3, 9), 12, 20, 4),
                                         sampled(ids_from(2, 70), 5, 1, 5)};
  const std::vector<Told> made = model.run(requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    std::vector<int32_t> ids = requests[i].prompt;
    ids.insert(ids.end(), made[i].ids.begin(), made[i].ids.end());
    const auto logits = test::reference_forward(*model.checkpoint, model.config, ids).logits;
    REQUIRE(made[i].logprobs.size() == made[i].ids.size());
    for (size_t k = 0; k < made[i].ids.size(); ++k) {
      const std::vector<double>& row = logits[requests[i].prompt.size() + k - 1];
      double sum = 0;
      for (const double each : row) sum += std::exp(each);
      const auto expected = [&](int32_t id) {
        return row[static_cast<size_t>(id)] - std::log(sum);
      };
      const TokenLogProbabilities& found = made[i].logprobs[k];
      CHECK(found.token.id == made[i].ids[k]);
      // An f32 logit is off by about 1e-6 here. The error enters twice: in the logit and the sum.
      CHECK(std::abs(found.token.log_probability - expected(found.token.id)) < 1e-5);
      REQUIRE(static_cast<int64_t>(found.likeliest.size()) == *requests[i].logprobs);
      std::vector<double> sorted = row;
      std::sort(sorted.rbegin(), sorted.rend());
      for (size_t rank = 0; rank < found.likeliest.size(); ++rank) {
        const TokenLogProbability& each = found.likeliest[rank];
        CHECK(std::abs(each.log_probability - expected(each.id)) < 1e-5);
        CHECK(std::abs(each.log_probability - (sorted[rank] - std::log(sum))) < 1e-5);
      }
    }
  }
}

TEST_CASE("generate: asking for log-probabilities changes no token, and only who asks gets some") {
  const TinyModel model;
  std::vector<Request> requests = mixed_requests();
  const std::vector<Told> with = model.run(requests);
  CHECK(with[0].logprobs.size() == 9);
  CHECK(with[2].logprobs.empty());
  CHECK(with[5].logprobs.size() == 4);
  CHECK(with[5].logprobs[0].likeliest.empty());
  for (Request& each : requests) each.logprobs = std::nullopt;
  const std::vector<Told> without = model.run(requests);
  for (size_t i = 0; i < requests.size(); ++i) CHECK(with[i].ids == without[i].ids);
}

TEST_CASE(
    "generate: in any batch, cache and number of threads a request gets the bits of it alone") {
  const TinyModel model;
  const std::vector<Request> requests = mixed_requests();
  std::vector<Told> alone;
  for (const Request& each : requests) alone.push_back(model.run({each}, {.threads = 1})[0]);
  const auto together = [&](const GenerationOptions& options, int64_t pages) {
    const std::vector<Told> made = model.run(requests, options, pages);
    for (size_t i = 0; i < requests.size(); ++i) {
      CAPTURE(i);
      check_same(made[i], alone[i]);
    }
  };
  together({}, 16);
  together({.threads = 3}, 16);
  together({.max_batch = 1}, 16);
  together({.max_batch = 2, .share_prefixes = false}, 16);
  together({.chunk_rows = 16}, 16);
  together({.chunk_rows = 64, .threads = 1}, 2);  // pages for the longest request alone
}

TEST_CASE(
    "generate: continuations among prompts have the bits of a scorer that does nothing else") {
  const TinyModel model;
  const std::vector<Request> requests = mixed_requests();
  const std::vector<Told> made = model.run(requests);
  const auto backend = make_cpu_backend(2);
  Scorer scorer(*model.checkpoint, model.config, *backend, {2, 256, 2});
  KvCache cache(*backend, model.config, {DType::f32, 8, scorer.runner().padding_pages()}, nullptr);
  for (const size_t i : {1, 3, 4}) {
    const std::vector<Alternatives> item = {requests[i].continuations};
    check_same(made[i], {{}, {}, scorer.run(cache, item)[0]});
    CHECK(made[i].ids.empty());
  }
}

TEST_CASE(
    "generate: models that keep states score continuations once no other sequence is active") {
  const test::FamilyModel model("qwen3.5");
  const std::vector<Request> requests = {
      sampled(ids_from(3, 12), 6, 2, 1), scored(ids_from(3, 12), {{1, 2, 3}, {1, 9}}),
      sampled(ids_from(8, 5), 4, 1, 2), scored(ids_from(7, 5), {{4}, {5}})};
  const std::vector<Told> together = told(model.checkpoint, model.config, requests, {}, 16);
  for (size_t i = 0; i < requests.size(); ++i) {
    CAPTURE(i);
    check_same(together[i], told(model.checkpoint, model.config, {requests[i]}, {}, 16)[0]);
  }
}
