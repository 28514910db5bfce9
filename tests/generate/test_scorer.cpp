// Scores of continuations equal those of a second forward pass and of each alternative alone.
#include <cmath>
#include <optional>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "checkpoint/model/read_model_config.h"
#include "generate/scorer.h"
#include "support/models/family_model.h"
#include "support/models/tiny_checkpoint.h"
#include "support/reference/reference_model.h"
#include "support/temp_dir.h"

using namespace fp8kv;
using test::TempDir;

namespace {

std::vector<int32_t> ids_of(int seed, int count) {
  std::vector<int32_t> ids;
  for (int i = 0; i < count; ++i) ids.push_back((i * 37 + seed) % 64);
  return ids;
}

Alternative joined(std::vector<int32_t> context, const std::vector<int32_t>& rest) {
  const auto begin = static_cast<int64_t>(context.size());
  context.insert(context.end(), rest.begin(), rest.end());
  return {context, begin};
}

// Continuations of one and of several tokens, which differ at the first token or later. Two items
// share a long context. One alternative has a shorter context, as if a tokenizer had merged tokens
// at the border.
std::vector<Alternatives> scored_items() {
  const std::vector<int32_t> shared = ids_of(5, 130);
  Alternatives merged = {joined(ids_of(1, 9), {3, 4, 5}), joined(ids_of(1, 9), {3, 4, 6, 7})};
  merged[1].begin = 7;
  return {{joined(ids_of(2, 7), {1}), joined(ids_of(2, 7), {2}), joined(ids_of(2, 7), {3})},
          {joined(shared, {8, 9, 10}), joined(shared, {8, 11}), joined(shared, {12})},
          merged,
          {joined(shared, {20, 21}), joined(shared, ids_of(9, 70))},
          {joined({4}, {7, 7}), joined({5}, {7, 7})}};
}

struct ScoredModel {
  TempDir folder;
  std::optional<Checkpoint> checkpoint;
  ModelConfig config;
  std::unique_ptr<Backend> backend = make_cpu_backend(2);

  ScoredModel() {
    test::write_tiny_checkpoint(folder / "m", test::tiny_config());
    checkpoint = Checkpoint::open(folder / "m");
    config = read_model_config(*checkpoint);
  }
};

std::vector<std::vector<ContinuationScore>> scores_of(const Checkpoint& checkpoint,
                                                      const ModelConfig& config, Backend& backend,
                                                      const std::vector<Alternatives>& items,
                                                      int64_t max_items, int threads) {
  Scorer scorer(checkpoint, config, backend, {max_items, 256, threads});
  KvCache cache(backend, config,
                {DType::f32, scorer_pages(items, max_items), scorer.runner().padding_pages()},
                nullptr);
  auto scores = scorer.run(cache, items);
  CHECK(cache.free_pages() == cache.pages());
  return scores;
}

bool same(const std::vector<std::vector<ContinuationScore>>& a,
          const std::vector<std::vector<ContinuationScore>>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t k = 0; k < a[i].size(); ++k) {
      if (a[i][k].log_probability != b[i][k].log_probability) return false;
      if (a[i][k].greedy != b[i][k].greedy) return false;
    }
  }
  return true;
}

}  // namespace

TEST_CASE("scorer: log-probabilities are those of an independent forward pass") {
  ScoredModel model;
  const std::vector<Alternatives> items = scored_items();
  const auto scores = scores_of(*model.checkpoint, model.config, *model.backend, items, 8, 2);
  for (size_t i = 0; i < items.size(); ++i) {
    for (size_t k = 0; k < items[i].size(); ++k) {
      CAPTURE(i);
      CAPTURE(k);
      const Alternative& each = items[i][k];
      const auto logits = test::reference_forward(*model.checkpoint, model.config, each.ids).logits;
      double expected = 0;
      bool greedy = true;
      for (auto at = static_cast<size_t>(each.begin); at < each.ids.size(); ++at) {
        const std::vector<double>& row = logits[at - 1];
        double sum = 0;
        for (const double logit : row) sum += std::exp(logit);
        expected += row[static_cast<size_t>(each.ids[at])] - std::log(sum);
        const auto best = std::max_element(row.begin(), row.end()) - row.begin();
        greedy = greedy && best == each.ids[at];
      }
      const auto tokens = static_cast<double>(each.ids.size()) - static_cast<double>(each.begin);
      CHECK(scores[i][k].log_probability == doctest::Approx(expected).epsilon(1e-5 * tokens));
      CHECK(scores[i][k].greedy == greedy);
    }
  }
}

TEST_CASE("scorer: whatever is scored beside it, an alternative gets the bits that it gets alone") {
  ScoredModel model;
  const std::vector<Alternatives> items = scored_items();
  const auto score = [&](const std::vector<Alternatives>& some, int64_t at_once, int threads) {
    return scores_of(*model.checkpoint, model.config, *model.backend, some, at_once, threads);
  };
  const auto together = score(items, 8, 3);
  CHECK(same(together, score(items, 1, 1)));
  CHECK(same(together, score(items, 2, 2)));
  for (size_t i = 0; i < items.size(); ++i) {
    for (size_t k = 0; k < items[i].size(); ++k) {
      CHECK(same({{together[i][k]}}, score({{items[i][k]}}, 1, 1)));
    }
  }
}

TEST_CASE("scorer: models that keep states score each alternative from its first token") {
  const test::FamilyModel model("qwen3.5");
  const auto backend = make_cpu_backend(2);
  const std::vector<Alternatives> items = {
      {joined(ids_of(3, 12), {1, 2, 3}), joined(ids_of(3, 12), {1, 9})},
      {joined(ids_of(7, 5), {4}), joined(ids_of(7, 5), {5})}};
  const auto together = scores_of(model.checkpoint, model.config, *backend, items, 2, 2);
  for (size_t i = 0; i < items.size(); ++i) {
    for (size_t k = 0; k < items[i].size(); ++k) {
      CHECK(same({{together[i][k]}},
                 scores_of(model.checkpoint, model.config, *backend, {{items[i][k]}}, 1, 1)));
    }
  }
}
