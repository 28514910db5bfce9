// Requests for generated text, the events that answer them, and figures. Computes nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/model/config.h"
#include "generate/log_probabilities.h"
#include "generate/sampling.h"
#include "generate/scorer.h"

namespace fp8kv {

struct Request {
  std::vector<int32_t> prompt;
  int64_t max_new_tokens = 128;
  SamplingOptions sampling = {};
  std::vector<int32_t> stop_ids = {};  // in addition to GenerationOptions::stop_ids
  // How many of the likeliest tokens to report beside each new token; nullopt: no
  // log-probabilities.
  std::optional<int64_t> logprobs = {};
  // If there are any, they are scored and nothing is generated. Each begins with the prompt.
  Alternatives continuations = {};

  bool is_scored() const { return !continuations.empty(); }
};

struct GenerationOptions {
  std::vector<int32_t> stop_ids = {};  // end a sequence; not part of its ids
  int64_t max_batch = 64;              // most sequences that decode together
  int64_t chunk_rows = 0;              // most prompt tokens in one step; 0: what suits the backend
  int64_t max_tokens = 0;              // tokens of the longest sequence; 0: the model's context
  // No effect on models whose layers keep states: a state has no pages to share.
  bool share_prefixes = true;
  int64_t max_requests = 0;  // number of requests to come; 0: not known
  int threads = 0;           // host threads for log-probabilities; 0: all cores

  // The number of sequences that keep states at the same time.
  int64_t states() const {
    return max_requests > 0 ? std::min(max_requests, max_batch) : max_batch;
  }
};

enum class FinishReason { stop, length, context };

// "stop": a stop id, or GenerationEvents::ends returned true. "length": max_new_tokens is reached.
// "context": the model's context is full.
std::string finish_reason_name(FinishReason reason);

struct GenerationStats {
  uint64_t requests = 0;  // continued, without scored ones
  uint64_t prompt_tokens = 0;
  uint64_t prompt_pages = 0;
  uint64_t shared_pages = 0;  // prompt pages that were reused from another prompt
  uint64_t new_tokens = 0;
  double prefill_seconds = 0;
  double decode_seconds = 0;
  double first_token_seconds = 0;  // from the first admitted prompt to the run's first new token
  uint64_t scored_continuations = 0;
  uint64_t scored_tokens = 0;  // tokens of continuations, without prompts
  double scoring_seconds = 0;
};

// Callbacks during generation. Prompts are numbered in the order they arrive.
struct GenerationEvents {
  std::function<void(size_t prompt, int32_t id)> token;
  std::function<void(size_t prompt, FinishReason reason)> finished;
  // Optional, called after each token(): true ends the sequence like a stop id.
  std::function<bool(size_t prompt)> ends = {};
  // Called before token(), for requests with `logprobs`.
  std::function<void(size_t prompt, const TokenLogProbabilities& found)> logprobs = {};
  // Replaces all the other calls for a request with continuations.
  std::function<void(size_t prompt, std::span<const ContinuationScore> scores)> scored = {};
  // Optional. Gets the logits [vocab_size] behind each drawn id, also those behind a stop id, which
  // token() never sees. Called before token(), by several threads at once for different prompts.
  std::function<void(size_t prompt, int32_t id, std::span<const float> logits)> logits = {};
};

// Returns the next request. With `wait` false, nullopt means that none is there yet. With `wait`
// true, nullopt means that none will come.
using RequestSource = std::function<std::optional<Request>(bool wait)>;

// The most tokens that a request can reach.
int64_t longest(const Request& request, int64_t max_seq_len);
// The largest of longest() over `requests`; 0 without requests.
int64_t longest(std::span<const Request> requests, int64_t max_seq_len);

// Throws if the request is empty or leaves no room in the model's context. `name` is for messages.
void check_request(const Request& request, const std::string& name, const ModelConfig& config);
// Throws a resource Error if the request needs more pages than the whole cache has.
void check_pages(const Request& request, const std::string& name, const ModelConfig& config,
                 int64_t pages);

// The pages that `requests` need if as many run together as the options allow.
int64_t pages_needed(std::span<const Request> requests, const GenerationOptions& options,
                     int64_t max_seq_len);

}  // namespace fp8kv
