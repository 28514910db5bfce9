// Log-probabilities of given continuations over a paged cache. Draws nothing.
//
// The prefix that all alternatives of an item share is computed once. Then each rest overwrites the
// one before it in the cache. Items that begin alike share pages. A score depends only on the
// alternative's own tokens, bit for bit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/machine/thread_pool.h"
#include "generate/runner.h"

namespace fp8kv {

struct Alternative {
  std::vector<int32_t> ids;  // the context, then the continuation
  int64_t begin = 0;         // start of the continuation, from 1 to ids.size() - 1
};
using Alternatives = std::vector<Alternative>;

struct ContinuationScore {
  double log_probability = 0;  // natural, summed over the continuation
  bool greedy = true;          // each of its tokens is the likeliest
};

// The most tokens that the model reads of an alternative: all but its last.
int64_t tokens_read(const Alternatives& item);

// The objects and limits that scoring works with.
struct ScoringParts {
  const ModelConfig& config;
  Runner& runner;
  ThreadPool& pool;
  int64_t step_rows = 0;  // tokens in a step, at most the runner's max_rows
  int64_t max_items = 0;  // items at once, at most the runner's sequences and states
};

// Returns the scores by item, then by alternative. REQUIRES that the cache has free pages for the
// longest item, and that all sequences in the cache have computed their whole prompts.
std::vector<std::vector<ContinuationScore>> score_alternatives(const ScoringParts& parts,
                                                               KvCache& cache,
                                                               std::span<const Alternatives> items);

struct ScorerSizes {
  int64_t max_items = 0;   // items at once
  int64_t max_tokens = 0;  // tokens of the longest item
  int threads = 0;         // 0: one per core
};

// A model that only scores.
class Scorer {
 public:
  Scorer(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
         const ScorerSizes& sizes);

  const Runner& runner() const { return runner_; }
  // See score_alternatives.
  std::vector<std::vector<ContinuationScore>> run(KvCache& cache,
                                                  std::span<const Alternatives> items);

 private:
  ThreadPool pool_;
  const ModelConfig& config_;
  int64_t max_items_;
  Runner runner_;
};

// The pages that let `max_items` items run at once, or fewer if items are long.
int64_t scorer_pages(std::span<const Alternatives> items, int64_t max_items);

}  // namespace fp8kv
