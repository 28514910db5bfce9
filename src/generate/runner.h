// A model on a backend: takes tokens and gives the next ones. Does no scheduling.
//
// Rows of a prompt are computed in one way and rows that decode in another, whatever else is in the
// step: what a sequence gets depends on its own tokens and options alone, bit for bit.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "checkpoint/checkpoint.h"
#include "core/config.h"
#include "generate/sampling.h"
#include "model/embedding.h"
#include "model/kv_cache.h"
#include "model/layer_states.h"
#include "model/model.h"
#include "model/step.h"

namespace fp8kv {

struct RunnerSizes {
  int64_t max_rows = 0;       // prompt tokens in a step
  int64_t max_sequences = 0;  // in a step
  int64_t max_tokens = 0;     // of a sequence
  int64_t states = 0;         // sequences whose states are kept at once
};

// A sequence's part of a step: its last tokens, for which it has room.
struct StepPart {
  std::span<const int32_t> ids;
  const KvCache::Sequence* sequence = nullptr;
  std::optional<SamplingOptions> next;  // how the next token is drawn; nullopt: not drawn
  int32_t state = -1;                   // slot of its states, below RunnerSizes::states
};

class Runner {
 public:
  Runner(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
         const RunnerSizes& sizes);

  // Pages that a cache needs beside those of sequences, see KvCacheOptions.
  int64_t padding_pages() const;
  uint64_t weight_bytes() const { return weight_bytes_; }  // in memory, decoded where they are
  uint64_t working_bytes() const;

  // Tokens of prompts. Gives the next token of each part that asks for it, in order.
  std::vector<int32_t> prefill(std::span<const StepPart> parts, const KvCache& cache);
  // Tokens of prompts, of which none is drawn. `take` gets the logits of `rows`, numbers of rows of
  // the step, a few at a time: [n, vocab_size] of rows[first] and those after it.
  using TakeLogits = std::function<void(size_t first, std::span<const float> logits)>;
  void logits(std::span<const StepPart> parts, const KvCache& cache, std::span<const int32_t> rows,
              const TakeLogits& take);
  // One token of each part, all of which ask for the next. To be called with one cache until
  // forget_recordings().
  std::vector<int32_t> decode(std::span<const StepPart> parts, const KvCache& cache);
  // The logits that the `index`-th token of the last prefill() or decode() was drawn from.
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
  SamplingRows sampling_;
  Tensor x_;                            // [max rows, dim]
  Tensor logits_;                       // [max sequences, vocab_size] f32
  Tensor positions_;                    // [max sequences] i32: of what is drawn for prompts
  Tensor next_ids_;                     // [max sequences] i32
  std::optional<Embedding> embedding_;  // made after the working memory
  std::vector<LayerWeights> layers_;
  HeadWeights head_;
  std::map<int64_t, Bucket> buckets_;  // by rows
};

}  // namespace fp8kv
