// Text generation for many prompts over one paged cache: prompts are admitted when there are pages
// for them, decode together, and leave when they end.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/log.h"
#include "core/config.h"
#include "io/checkpoint.h"
#include "model/kv_cache.h"
#include "text/sampler.h"

namespace fp8kv {

struct GenerationOptions {
  int64_t max_new_tokens = 128;
  SamplingOptions sampling;
  std::vector<int32_t> stop_ids;  // end a sequence; not part of its ids
  int64_t max_batch = 64;         // sequences that decode together at most
  int64_t chunk_rows = 512;       // prompt tokens in one prefill step at most
};

enum class FinishReason { stop, length, context };

// "stop": a stop id; "length": max_new_tokens; "context": the model's longest sequence.
std::string finish_reason_name(FinishReason reason);

struct GenerationStats {
  uint64_t prompt_tokens = 0;
  uint64_t new_tokens = 0;
  double prefill_seconds = 0;
  double decode_seconds = 0;
  double first_token_seconds = 0;  // from the start to the first token of any prompt
};

// What happens during generation, as it happens.
struct GenerationEvents {
  std::function<void(size_t prompt, int32_t id)> token;
  std::function<void(size_t prompt, FinishReason reason)> finished;
};

// Pages that `prompts` need when as many of them run together as the options allow.
int64_t pages_needed(std::span<const std::vector<int32_t>> prompts,
                     const GenerationOptions& options, int64_t max_seq_len);

// Continues every prompt (ids, non-empty). What a prompt yields depends on the other prompts only
// through the arithmetic of batched products. Throws when a prompt is longer than the model's
// context, or needs more pages than the whole cache has.
GenerationStats generate(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
                         KvCache& cache, std::span<const std::vector<int32_t>> prompts,
                         const GenerationOptions& options, const GenerationEvents& events);

}  // namespace fp8kv
