#include "generate/generate.h"

#include <algorithm>
#include <chrono>
#include <deque>

#include "base/error.h"
#include "base/interrupt.h"

namespace fp8kv {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool is_in(const std::vector<int32_t>& ids, int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

struct Active {
  size_t index = 0;
  Request request;
  KvCache::Sequence cached;
  int32_t state = 0;  // slot of its states
  int32_t last_id = 0;
  int64_t new_tokens = 0;
  bool stopped = false;

  int64_t prompt_size() const { return static_cast<int64_t>(request.prompt.size()); }
  bool in_prompt() const { return cached.tokens < prompt_size(); }
};

// One run of a Generator.
class Schedule {
 public:
  Schedule(const ModelConfig& config, const GenerationOptions& options, Runner& runner,
           KvCache& cache, const RequestSource& source, const GenerationEvents& events)
      : config_(config),
        options_(options),
        runner_(runner),
        cache_(cache),
        source_(source),
        events_(events) {
    for (auto slot = static_cast<int32_t>(options.max_batch); slot > 0;) {
      free_states_.push_back(--slot);
    }
  }

  GenerationStats run() {
    while (true) {
      admit();
      if (active_.empty()) return stats_;
      check_interrupt();
      prefill();
      decode();
    }
  }

 private:
  // Takes in prompts until one has to wait for another to end, or there are none.
  void admit() {
    while (static_cast<int64_t>(active_.size()) < options_.max_batch) {
      if (!next_) next_ = source_(active_.empty());
      if (!next_) return;
      Active sequence;
      if (!cache_.admit(sequence.cached, next_->prompt, longest(*next_, config_.max_seq_len),
                        options_.share_prefixes && !config_.recurrence)) {
        FP8KV_ASSERT(!active_.empty());  // each fits alone, see check_pages
        return;
      }
      if (stats_.requests == 0) start_ = Clock::now();
      sequence.index = stats_.requests++;
      sequence.state = free_states_.back();
      free_states_.pop_back();
      sequence.request = *std::move(next_);
      next_.reset();
      stats_.prompt_tokens += sequence.request.prompt.size();
      stats_.prompt_pages += static_cast<uint64_t>(KvCache::pages_for(sequence.prompt_size()));
      stats_.shared_pages += static_cast<uint64_t>(KvCache::pages_for(sequence.cached.tokens));
      active_.push_back(std::move(sequence));
    }
  }

  // One step of prompts, the first that came first: what a prompt shares with one before it is then
  // computed before it or in the same step.
  void prefill() {
    int64_t room = options_.chunk_rows;
    std::vector<StepPart> parts;
    std::vector<Active*> members;
    for (Active& sequence : active_) {
      if (room == 0) break;
      if (!sequence.in_prompt()) continue;
      const int64_t begin = sequence.cached.tokens;
      const int64_t count = std::min(room, sequence.prompt_size() - begin);
      extend(sequence, count);
      room -= count;
      StepPart part{std::span(sequence.request.prompt).subspan(begin, count),
                    &sequence.cached,
                    {},
                    sequence.state};
      if (!sequence.in_prompt()) {
        part.next = sequence.request.sampling;
        members.push_back(&sequence);
      }
      parts.push_back(part);
    }
    if (parts.empty()) return;
    const auto begin = Clock::now();
    const std::vector<int32_t> ids = runner_.prefill(parts, cache_);
    stats_.prefill_seconds += seconds_since(begin);
    for (size_t i = 0; i < ids.size(); ++i) accept(*members[i], ids[i]);
    retire();
  }

  // One token of every sequence that is past its prompt.
  void decode() {
    std::vector<StepPart> parts;
    std::vector<Active*> members;
    for (Active& sequence : active_) {
      if (sequence.in_prompt()) continue;
      extend(sequence, 1);
      parts.push_back({std::span(&sequence.last_id, 1), &sequence.cached, sequence.request.sampling,
                       sequence.state});
      members.push_back(&sequence);
    }
    if (parts.empty()) return;
    const auto begin = Clock::now();
    const std::vector<int32_t> ids = runner_.decode(parts, cache_);
    stats_.decode_seconds += seconds_since(begin);
    for (size_t i = 0; i < ids.size(); ++i) accept(*members[i], ids[i]);
    retire();
  }

  void extend(Active& sequence, int64_t tokens) {
    const bool extended = cache_.extend(sequence.cached, tokens);
    FP8KV_ASSERT(extended);  // its pages are its own since it was admitted
  }

  void accept(Active& sequence, int32_t id) {
    if (stats_.new_tokens == 0) stats_.first_token_seconds = seconds_since(start_);
    ++stats_.new_tokens;
    ++sequence.new_tokens;
    sequence.last_id = id;
    sequence.stopped = is_in(options_.stop_ids, id) || is_in(sequence.request.stop_ids, id);
    if (sequence.stopped) return;
    events_.token(sequence.index, id);
    sequence.stopped = events_.ends && events_.ends(sequence.index);
  }

  std::optional<FinishReason> finished(const Active& sequence) const {
    if (sequence.new_tokens == 0) return std::nullopt;
    if (sequence.stopped) return FinishReason::stop;
    if (sequence.new_tokens == sequence.request.max_new_tokens) return FinishReason::length;
    if (sequence.cached.tokens == config_.max_seq_len) return FinishReason::context;
    return std::nullopt;
  }

  // Gives back the pages and the states of sequences that have ended.
  void retire() {
    std::erase_if(active_, [&](Active& sequence) {
      const std::optional<FinishReason> reason = finished(sequence);
      if (!reason) return false;
      events_.finished(sequence.index, *reason);
      cache_.release(sequence.cached);
      free_states_.push_back(sequence.state);
      return true;
    });
  }

  const ModelConfig& config_;
  const GenerationOptions& options_;
  Runner& runner_;
  KvCache& cache_;
  const RequestSource& source_;
  const GenerationEvents& events_;
  std::deque<Active> active_;  // in the order they came
  // The last first. Never more are taken than there are requests.
  std::vector<int32_t> free_states_;
  std::optional<Request> next_;  // waits for pages
  Clock::time_point start_;
  GenerationStats stats_;
};

}  // namespace

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
  if (length == 0) {
    throw Error(cat(name, " has no tokens"),
                "give it some text; this model's tokenizer adds no token of its own");
  }
  if (length >= config.max_seq_len) {
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

Generator::Generator(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
                     const GenerationOptions& options)
    : config_(config),
      options_(options),
      runner_(checkpoint, config, backend,
              {options.chunk_rows, options.max_batch,
               options.max_tokens > 0 ? options.max_tokens : config.max_seq_len,
               options.max_requests > 0 ? std::min(options.max_requests, options.max_batch)
                                        : options.max_batch}) {}

GenerationStats Generator::run(KvCache& cache, const RequestSource& source,
                               const GenerationEvents& events) {
  runner_.forget_recordings();  // they are of the cache of the run before
  return Schedule(config_, options_, runner_, cache, source, events).run();
}

GenerationStats generate(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
                         const KvCacheOptions& cache, const KvScales* scales,
                         std::span<const Request> requests, const GenerationOptions& options,
                         const GenerationEvents& events) {
  GenerationOptions sized = options;
  for (size_t i = 0; i < requests.size(); ++i) {
    check_request(requests[i], cat("prompt ", i), config);
    check_pages(requests[i], cat("prompt ", i), config, cache.n_pages);
  }
  sized.max_requests = static_cast<int64_t>(requests.size());
  sized.max_tokens = std::max(sized.max_tokens, longest(requests, config.max_seq_len));
  Generator generator(checkpoint, config, backend, sized);
  KvCacheOptions padded = cache;
  padded.padding_pages = generator.runner().padding_pages();
  KvCache pages(backend, config, padded, scales);
  size_t next = 0;
  const GenerationStats stats = generator.run(
      pages,
      [&](bool /*wait*/) {
        return next < requests.size() ? std::optional(requests[next++]) : std::nullopt;
      },
      events);
  FP8KV_ASSERT(pages.free_pages() == pages.pages());
  return stats;
}

}  // namespace fp8kv
