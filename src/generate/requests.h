// Requests for generated text, and the events and figures that answer them. Computes nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/config.h"
#include "generate/log_probabilities.h"
#include "generate/sampling.h"
#include "generate/scorer.h"

namespace fp8kv {

struct Request {
  std::vector<int32_t> prompt;
  int64_t max_new_tokens = 128;
  SamplingOptions sampling = {};
  std::vector<int32_t> stop_ids = {};  // beside those of GenerationOptions
  // Log-probabilities of each new token and of so many of the likeliest; nullopt: none.
  std::optional<int64_t> logprobs = {};
  // If not empty, these are scored and nothing is generated. Each begins with the prompt.
  Alternatives continuations = {};

  bool is_scored() const { return !continuations.empty(); }
};

struct GenerationOptions {
  std::vector<int32_t> stop_ids = {};  // end a sequence; not part of its ids
  int64_t max_batch = 64;              // sequences that decode together at most
  int64_t chunk_rows = 512;            // prompt tokens in one step at most
  int64_t max_tokens = 0;              // of the longest sequence to come; 0: the model's context
  // Models whose layers keep states share none: a state has no pages.
  bool share_prefixes = true;
  int64_t max_requests = 0;  // that there will be; 0: not known
  int threads = 0;           // for what is computed from logits on the host; 0: all cores

  // Sequences whose states are kept at once.
  int64_t states() const {
    return max_requests > 0 ? std::min(max_requests, max_batch) : max_batch;
  }
};

enum class FinishReason { stop, length, context };

// "stop": a stop id, or GenerationEvents::ends; "length": max_new_tokens; "context": the model's
// longest sequence.
std::string finish_reason_name(FinishReason reason);

struct GenerationStats {
  uint64_t requests = 0;  // that were continued
  uint64_t prompt_tokens = 0;
  uint64_t prompt_pages = 0;
  uint64_t shared_pages = 0;  // of these, that another prompt had filled
  uint64_t new_tokens = 0;
  double prefill_seconds = 0;
  double decode_seconds = 0;
  double first_token_seconds = 0;  // from the first prompt to the first token of any
  uint64_t scored_continuations = 0;
  uint64_t scored_tokens = 0;  // of the continuations
  double scoring_seconds = 0;
};

// Called during generation, as things happen. Prompts are numbered in the order they come.
struct GenerationEvents {
  std::function<void(size_t prompt, int32_t id)> token;
  std::function<void(size_t prompt, FinishReason reason)> finished;
  // Asked after each token, where it is given: true ends the sequence, as a stop id does.
  std::function<bool(size_t prompt)> ends = {};
  // Before the token itself, where the request wants them.
  std::function<void(size_t prompt, const TokenLogProbabilities& found)> logprobs = {};
  // In place of all that, of a request whose continuations are given.
  std::function<void(size_t prompt, std::span<const ContinuationScore> scores)> scored = {};
};

// The next prompt; with `wait` false, nullopt when there is none yet. With `wait` true, nullopt
// means that there will be none.
using RequestSource = std::function<std::optional<Request>(bool wait)>;

// Tokens that a request may come to have.
int64_t longest(const Request& request, int64_t max_seq_len);
// The most that any of these may come to have; 0 without any.
int64_t longest(std::span<const Request> requests, int64_t max_seq_len);

// Throws, with `name` for the request, when it is empty or leaves no room in the model's context.
void check_request(const Request& request, const std::string& name, const ModelConfig& config);
// Throws a resource Error when it needs more pages than the whole cache has.
void check_pages(const Request& request, const std::string& name, const ModelConfig& config,
                 int64_t pages);

// Pages that `requests` need when as many of them run together as the options allow.
int64_t pages_needed(std::span<const Request> requests, const GenerationOptions& options,
                     int64_t max_seq_len);

}  // namespace fp8kv
