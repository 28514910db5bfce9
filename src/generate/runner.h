// A model on a backend: reads tokens and draws the next ones. Does no scheduling.
//
// Prompt rows use one kind of arithmetic and decoded rows another, whatever else is in the step. So
// a sequence's result depends only on its own tokens and options, bit for bit.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "checkpoint/checkpoint.h"
#include "core/model/config.h"
#include "generate/sampling.h"
#include "model/cache/kv_cache.h"
#include "model/embedding.h"
#include "model/model.h"
#include "model/parts/layer_states.h"
#include "model/parts/sparse/chosen_tokens.h"
#include "model/step.h"

namespace fp8kv {

struct RunnerSizes {
  int64_t max_rows = 0;       // prompt tokens in a step
  int64_t max_sequences = 0;  // sequences in a step
  int64_t max_tokens = 0;     // tokens of a sequence
  int64_t states = 0;         // sequences that keep states at the same time
};

// One sequence's tokens in a step. `sequence` is already extended by them.
struct StepPart {
  std::span<const int32_t> ids;
  const KvCache::Sequence* sequence = nullptr;
  std::optional<SamplingOptions> next;   // how to draw the next token; nullopt: draw none
  int32_t state = -1;                    // the sequence's state slot, below RunnerSizes::states
  std::span<const int32_t> before = {};  // all tokens of the sequence before `ids`
};

class Runner {
 public:
  Runner(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
         const RunnerSizes& sizes);

  // The extra pages that a cache needs, see KvCacheOptions::padding_pages.
  int64_t padding_pages() const;
  uint64_t weight_bytes() const { return weight_bytes_; }  // in memory, so after any decoding
  uint64_t working_bytes() const;

  // Reads tokens of prompts. Returns the next token of each part with `next`, in order.
  std::vector<int32_t> prefill(std::span<const StepPart> parts, const KvCache& cache);
  // Reads tokens of prompts and draws none. `rows` are row numbers in the step. `take` gets their
  // logits a few rows at a time: [n, vocab_size] for rows[first] and the n - 1 after it.
  using TakeLogits = std::function<void(size_t first, std::span<const float> logits)>;
  void logits(std::span<const StepPart> parts, const KvCache& cache, std::span<const int32_t> rows,
              const TakeLogits& take);
  // Reads one token of each part and returns the next ones. REQUIRES `next` in every part, and the
  // same cache in all calls until forget_recordings().
  std::vector<int32_t> decode(std::span<const StepPart> parts, const KvCache& cache);
  // Copies the logits behind the `index`-th token that the last prefill() or decode() returned.
  void drawn_logits(size_t index, std::span<float> out);  // [vocab_size]
  void forget_recordings() { buckets_.clear(); }

 private:
  struct Bucket {
    bool has_run = false;
    Recording recording;
  };

  int64_t bucket_for(int64_t n) const;
  StepSize decode_size() const { return {sizes_.max_sequences, 1}; }
  void gather(std::span<const StepPart> parts, StepSize computed_as);
  void advance(const KvCache& cache, int64_t rows);
  void forward(const KvCache& cache, const ConstTensorView& positions);
  void wait();
  std::vector<int32_t> drawn(int64_t n);

  const ModelConfig& config_;
  Backend& backend_;
  RunnerSizes sizes_;
  int64_t most_rows_decoded_;
  int64_t most_rows_;
  uint64_t weight_bytes_ = 0;
  Step step_;
  Forward forward_;
  LayerStates states_;
  ChosenTokens chosen_;
  SamplingRows sampling_;
  Tensor x_;                            // [max rows, dim]
  Tensor logits_;                       // [max sequences, vocab_size] f32
  Tensor positions_;                    // [max sequences] i32: of tokens that prefill() draws
  Tensor next_ids_;                     // [max sequences] i32
  std::optional<Embedding> embedding_;  // optional, since it is made after the working memory
  std::vector<LayerWeights> layers_;
  HeadWeights head_;
  std::map<int64_t, Bucket> buckets_;  // by number of rows
};

}  // namespace fp8kv
