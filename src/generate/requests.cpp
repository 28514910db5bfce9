#include "generate/requests.h"

#include <algorithm>

#include "base/error.h"
#include "model/cache/kv_cache.h"

namespace fp8kv {

std::string finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::stop:
      return "stop";
    case FinishReason::length:
      return "length";
    case FinishReason::context:
      return "context";
  }
  return "?";
}

int64_t longest(const Request& request, int64_t max_seq_len) {
  if (request.is_scored()) return tokens_read(request.continuations);
  const auto length = static_cast<int64_t>(request.prompt.size());
  return length + std::min(request.max_new_tokens, max_seq_len - length);
}

int64_t longest(std::span<const Request> requests, int64_t max_seq_len) {
  int64_t most = 0;
  for (const Request& request : requests) most = std::max(most, longest(request, max_seq_len));
  return most;
}

void check_request(const Request& request, const std::string& name, const ModelConfig& config) {
  const auto length = static_cast<int64_t>(request.prompt.size());
  const int64_t read = longest(request, config.max_seq_len);
  if (request.is_scored() && read > config.max_seq_len) {
    throw Error(cat(name, " has ", read, " tokens with its longest continuation, the model's ",
                    "context is ", config.max_seq_len, " (", config.context_key, ")"),
                "shorten it");
  }
  if (length == 0) {
    throw Error(cat(name, " has no tokens"),
                "give it some text; this model's tokenizer adds no token of its own");
  }
  if (length >= config.max_seq_len && !request.is_scored()) {
    throw Error(cat(name, " has ", count_of(request.prompt.size(), "token"),
                    ", the model's context is ", config.max_seq_len, " (", config.context_key, ")"),
                "shorten it");
  }
}

void check_pages(const Request& request, const std::string& name, const ModelConfig& config,
                 int64_t pages) {
  const int64_t needed = KvCache::pages_for(longest(request, config.max_seq_len));
  if (needed <= pages) return;
  throw Error(cat(name, " needs ", count_of(static_cast<uint64_t>(needed), "page"),
                  " of the KV cache, which has ", pages),
              "shorten it, ask for fewer tokens, or give the cache more memory",
              ErrorKind::resource);
}

int64_t pages_needed(std::span<const Request> requests, const GenerationOptions& options,
                     int64_t max_seq_len) {
  std::vector<int64_t> pages;
  for (const Request& request : requests) {
    pages.push_back(KvCache::pages_for(longest(request, max_seq_len)));
  }
  std::sort(pages.rbegin(), pages.rend());
  const size_t together = std::min(pages.size(), static_cast<size_t>(options.max_batch));
  int64_t sum = 0;
  for (size_t i = 0; i < together; ++i) sum += pages[i];
  return sum;
}

}  // namespace fp8kv
