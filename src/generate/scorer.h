// Log-probabilities of given continuations over a paged cache. Draws nothing.
//
// Alternatives of one item are computed together: the tokens that all of them begin with once, each
// rest over the place of the one before. Items that begin alike share pages. A score depends on the
// alternative's own tokens alone, bit for bit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "generate/runner.h"

namespace fp8kv {

struct Alternative {
  std::vector<int32_t> ids;  // the context, then the continuation
  int64_t begin = 0;         // of the continuation: from 1 to ids.size() - 1
};
using Alternatives = std::vector<Alternative>;

struct ContinuationScore {
  double log_probability = 0;  // of the continuation, natural
  bool greedy = true;          // each of its tokens is the likeliest
};

// Tokens of an alternative that the model reads: all but the last.
int64_t tokens_read(const Alternatives& item);

// Scoring runs on these.
struct ScoringParts {
  const ModelConfig& config;
  Runner& runner;
  ThreadPool& pool;
  int64_t step_rows = 0;  // tokens in a step, at most those of the runner
  int64_t max_items = 0;  // at once, at most as many as the runner has sequences and states
};

// Scores by item, then by alternative. REQUIRES that the cache has free pages for the longest item,
// and that no sequence in the cache is still to compute some of its prompt.
std::vector<std::vector<ContinuationScore>> score_alternatives(const ScoringParts& parts,
                                                               KvCache& cache,
                                                               std::span<const Alternatives> items);

// A model that does nothing else.
class Scorer {
 public:
  // At most `max_items` at once, none of more tokens than `max_tokens`.
  Scorer(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
         int64_t max_items, int64_t max_tokens, int threads);

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

// Pages that let `max_items` items run at once, or fewer where they are long.
int64_t scorer_pages(std::span<const Alternatives> items, int64_t max_items);

}  // namespace fp8kv
