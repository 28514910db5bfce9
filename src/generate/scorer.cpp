#include "generate/scorer.h"

#include <algorithm>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/machine/cpu_topology.h"
#include "generate/log_probabilities.h"

namespace fp8kv {
namespace {

constexpr int64_t kStepRows = 512;
// A cache of so many tokens holds enough items to fill every step.
constexpr int64_t kPooledTokens = 32 * kStepRows;

// An item whose pages are reserved.
struct Admitted {
  const Alternatives* item = nullptr;
  std::vector<ContinuationScore>* scores = nullptr;
  KvCache::Sequence cached;
  int32_t state = 0;
  int64_t stem = 0;  // length of the prefix that all alternatives share
};

// Tokens [begin, end) of an alternative that the model has to read.
struct Piece {
  Admitted* of = nullptr;
  size_t alternative = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

// A token whose log-probability is wanted from row `row` of the logits.
struct Asked {
  size_t row = 0;
  int32_t id = 0;
  ContinuationScore* score = nullptr;
};

int64_t read_of(const Alternative& each) {
  return static_cast<int64_t>(each.ids.size()) - 1;
}

int64_t stem_of(const Alternatives& item) {
  int64_t stem = read_of(item[0]);
  for (const Alternative& each : item) {
    const int64_t most = std::min(stem, read_of(each));
    const auto end = each.ids.begin() + most;
    stem = std::mismatch(each.ids.begin(), end, item[0].ids.begin()).first - each.ids.begin();
  }
  return stem;
}

// The tokens whose pages may be shared. KvCache::admit leaves the last one to compute, because its
// logits are wanted.
std::span<const int32_t> context_of(const Alternatives& item, int64_t stem) {
  int64_t length = stem;
  for (const Alternative& each : item) length = std::min(length, each.begin);
  return std::span(item[0].ids).first(static_cast<size_t>(std::max<int64_t>(length, 1)));
}

// Scores one batch of items.
class ScoredBatch {
 public:
  ScoredBatch(const ScoringParts& parts, KvCache& cache)
      : runner_(parts.runner),
        cache_(cache),
        pool_(parts.pool),
        step_rows_(parts.step_rows),
        vocab_size_(static_cast<size_t>(parts.config.vocab_size)) {}

  void run(std::span<Admitted> items) {
    size_t rounds = 0;
    for (const Admitted& each : items) rounds = std::max(rounds, each.item->size());
    for (size_t round = 0; round < rounds; ++round) {
      std::vector<Piece> pieces;
      for (Admitted& each : items) {
        if (round >= each.item->size()) continue;
        // This alternative overwrites the previous one behind the stem.
        if (round > 0) each.cached.tokens = each.stem;
        const int64_t begin = each.cached.tokens;
        const int64_t end = read_of((*each.item)[round]);
        if (begin < end) pieces.push_back({&each, round, begin, end});
      }
      compute(pieces);
    }
  }

 private:
  // Runs the pieces in steps of at most `step_rows_` tokens, and splits a piece at a full step.
  void compute(const std::vector<Piece>& pieces) {
    int64_t rows_left = step_rows_;
    std::vector<Piece> step;
    for (Piece rest : pieces) {
      while (rest.begin < rest.end) {
        Piece part = rest;
        part.end = std::min(rest.end, rest.begin + rows_left);
        rest.begin = part.end;
        rows_left -= part.end - part.begin;
        step.push_back(part);
        if (rows_left > 0) continue;
        compute_step(step);
        step.clear();
        rows_left = step_rows_;
      }
    }
    if (!step.empty()) compute_step(step);
  }

  void compute_step(const std::vector<Piece>& pieces) {
    check_interrupt();
    std::vector<StepPart> parts;
    std::vector<int32_t> rows;
    std::vector<Asked> asked;
    int64_t first_row = 0;
    for (const Piece& each : pieces) {
      const Alternative& alternative = (*each.of->item)[each.alternative];
      const bool extended = cache_.extend(each.of->cached, each.end - each.begin);
      FP8KV_ASSERT(extended);  // admit() reserved all pages of the item
      parts.push_back({std::span(alternative.ids)
                           .subspan(static_cast<size_t>(each.begin),
                                    static_cast<size_t>(each.end - each.begin)),
                       &each.of->cached,
                       {},
                       each.of->state,
                       std::span(alternative.ids).first(static_cast<size_t>(each.begin))});
      for (int64_t at = each.begin; at < each.end; ++at) {
        const size_t before = asked.size();
        ask(each, at, rows.size(), asked);
        if (asked.size() > before)
          rows.push_back(static_cast<int32_t>(first_row + at - each.begin));
      }
      first_row += each.end - each.begin;
    }
    size_t next = 0;
    runner_.logits(parts, cache_, rows, [&](size_t first, std::span<const float> logits) {
      const size_t n = logits.size() / vocab_size_;
      sums_.resize(n);
      pool_.run(static_cast<int64_t>(n), [&](int64_t job, int /*thread*/) {
        const auto row = static_cast<size_t>(job);
        sums_[row] = sum_logits(logits.subspan(row * vocab_size_, vocab_size_));
      });
      for (; next < asked.size() && asked[next].row < first + n; ++next) {
        const Asked& each = asked[next];
        const size_t row = each.row - first;
        const auto id = static_cast<size_t>(each.id);
        each.score->log_probability += double{logits[row * vocab_size_ + id]} - sums_[row].log_sum;
        if (sums_[row].best != id) each.score->greedy = false;
      }
    });
  }

  // Adds the tokens wanted from the row at `at`. A row of the stem serves all alternatives.
  static void ask(const Piece& piece, int64_t at, size_t row, std::vector<Asked>& asked) {
    const Alternatives& item = *piece.of->item;
    for (size_t i = 0; i < item.size(); ++i) {
      if (at >= piece.of->stem && i != piece.alternative) continue;
      if (at + 1 < item[i].begin || at >= read_of(item[i])) continue;
      asked.push_back({row, item[i].ids[static_cast<size_t>(at) + 1], &(*piece.of->scores)[i]});
    }
  }

  Runner& runner_;
  KvCache& cache_;
  ThreadPool& pool_;
  int64_t step_rows_;
  size_t vocab_size_;
  std::vector<LogitSum> sums_;  // of the rows that the runner handed over last
};

}  // namespace

int64_t tokens_read(const Alternatives& item) {
  int64_t most = 0;
  for (const Alternative& each : item) most = std::max(most, read_of(each));
  return most;
}

int64_t scorer_pages(std::span<const Alternatives> items, int64_t max_items) {
  std::vector<int64_t> pages = {1};
  for (const Alternatives& each : items) pages.push_back(KvCache::pages_for(tokens_read(each)));
  std::sort(pages.rbegin(), pages.rend());
  int64_t sum = 0;
  for (size_t i = 0; i < std::min(pages.size(), static_cast<size_t>(max_items)); ++i) {
    sum += pages[i];
  }
  return std::max(pages[0], std::min(sum, kPooledTokens / kPageSize));
}

std::vector<std::vector<ContinuationScore>> score_alternatives(
    const ScoringParts& parts, KvCache& cache, std::span<const Alternatives> items) {
  const bool keeps_states = parts.config.keeps_states();
  std::vector<std::vector<ContinuationScore>> scores(items.size());
  // A state cannot go back to the end of the stem. So each alternative becomes an item of its own.
  std::vector<Alternatives> parted;
  std::vector<std::vector<ContinuationScore>> parted_scores;
  if (keeps_states) {
    for (const Alternatives& item : items) {
      for (const Alternative& each : item) parted.push_back({each});
    }
    parted_scores.resize(parted.size());
  }
  const std::span<const Alternatives> all = keeps_states ? parted : items;
  auto& out = keeps_states ? parted_scores : scores;
  ScoredBatch batch(parts, cache);
  for (size_t next = 0; next < all.size();) {
    std::vector<Admitted> admitted;
    for (; next < all.size() && static_cast<int64_t>(admitted.size()) < parts.max_items; ++next) {
      const Alternatives& item = all[next];
      Admitted each{&item, &out[next], {}, static_cast<int32_t>(admitted.size()), stem_of(item)};
      if (!cache.admit(each.cached, context_of(item, each.stem), tokens_read(item),
                       !keeps_states)) {
        break;
      }
      out[next].resize(item.size());
      admitted.push_back(std::move(each));
    }
    FP8KV_ASSERT(!admitted.empty());
    batch.run(admitted);
    for (Admitted& each : admitted) cache.release(each.cached);
  }
  for (size_t i = 0, at = 0; keeps_states && i < items.size(); ++i) {
    for (size_t k = 0; k < items[i].size(); ++k) scores[i].push_back(parted_scores[at++][0]);
  }
  return scores;
}

Scorer::Scorer(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
               const ScorerSizes& sizes)
    : pool_(sizes.threads > 0 ? sizes.threads : usable_cores()),
      config_(config),
      max_items_(sizes.max_items),
      runner_(checkpoint, config, backend,
              {kStepRows, sizes.max_items, sizes.max_tokens, sizes.max_items}) {}

std::vector<std::vector<ContinuationScore>> Scorer::run(KvCache& cache,
                                                        std::span<const Alternatives> items) {
  return score_alternatives({config_, runner_, pool_, kStepRows, max_items_}, cache, items);
}

}  // namespace fp8kv
