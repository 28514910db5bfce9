// Text generation for any number of prompts over one paged cache.
//
// Prompts are admitted in the order they come, each when there are pages for the longest it may
// become: an admitted one can always go on, so none is ever stopped half-way and nothing can
// deadlock; the first in line is never overtaken, so none waits for ever. Prompts are computed in
// chunks beside the sequences that decode, which leave as they end. Prompts that begin alike share
// the pages of what they have in common.
// What a prompt yields depends on its own tokens and options alone, bit for bit; see Runner.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/config.h"
#include "generate/runner.h"
#include "generate/sampling.h"
#include "model/kv_cache.h"

namespace fp8kv {

struct Request {
  std::vector<int32_t> prompt;
  int64_t max_new_tokens = 128;
  SamplingOptions sampling = {};
  std::vector<int32_t> stop_ids = {};  // beside those of GenerationOptions
};

struct GenerationOptions {
  std::vector<int32_t> stop_ids = {};  // end a sequence; not part of its ids
  int64_t max_batch = 64;              // sequences that decode together at most
  int64_t chunk_rows = 512;            // prompt tokens in one step at most
  int64_t max_tokens = 0;              // of the longest sequence to come; 0: the model's context
  // Models whose layers keep states share none: a state has no pages.
  bool share_prefixes = true;
  int64_t max_requests = 0;  // that there will be; 0: not known
};

enum class FinishReason { stop, length, context };

// "stop": a stop id, or GenerationEvents::ends; "length": max_new_tokens; "context": the model's
// longest sequence.
std::string finish_reason_name(FinishReason reason);

struct GenerationStats {
  uint64_t requests = 0;
  uint64_t prompt_tokens = 0;
  uint64_t prompt_pages = 0;
  uint64_t shared_pages = 0;  // of these, that another prompt had filled
  uint64_t new_tokens = 0;
  double prefill_seconds = 0;
  double decode_seconds = 0;
  double first_token_seconds = 0;  // from the first prompt to the first token of any
};

// What happens during generation, as it happens. Prompts are numbered in the order they come.
struct GenerationEvents {
  std::function<void(size_t prompt, int32_t id)> token;
  std::function<void(size_t prompt, FinishReason reason)> finished;
  // Asked after each token, where it is given: true ends the sequence, as a stop id does.
  std::function<bool(size_t prompt)> ends = {};
};

// The next prompt; with `wait` false, nullopt when there is none yet. With `wait` true, nullopt
// means that there will be none.
using RequestSource = std::function<std::optional<Request>(bool wait)>;

// Tokens that a request may come to have.
int64_t longest(const Request& request, int64_t max_seq_len);
// Of any of these; 0 without any.
int64_t longest(std::span<const Request> requests, int64_t max_seq_len);

// Throws, with `name` for the request, when it is empty or leaves no room in the model's context.
void check_request(const Request& request, const std::string& name, const ModelConfig& config);
// Throws a resource Error when it needs more pages than the whole cache has.
void check_pages(const Request& request, const std::string& name, const ModelConfig& config,
                 int64_t pages);

// Pages that `requests` need when as many of them run together as the options allow.
int64_t pages_needed(std::span<const Request> requests, const GenerationOptions& options,
                     int64_t max_seq_len);

class Generator {
 public:
  // Puts the model on the backend. A cache is made after that, of what is left.
  Generator(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
            const GenerationOptions& options);

  const Runner& runner() const { return runner_; }

  // Continues every prompt of `source`. REQUIRES requests that pass both checks, and the padding
  // pages of runner().
  GenerationStats run(KvCache& cache, const RequestSource& source, const GenerationEvents& events);

 private:
  const ModelConfig& config_;
  GenerationOptions options_;
  Runner runner_;
};

// All of that for requests that are there already; checks them.
GenerationStats generate(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
                         const KvCacheOptions& cache, const KvScales* scales,
                         std::span<const Request> requests, const GenerationOptions& options,
                         const GenerationEvents& events);

}  // namespace fp8kv
