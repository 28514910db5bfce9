#include "generate/schedule.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/machine/cpu_topology.h"

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
  int32_t state = 0;         // slot of the sequence's states
  std::vector<int32_t> ids;  // the prompt, then the drawn tokens
  int64_t new_tokens = 0;
  bool stopped = false;

  int64_t prompt_size() const { return std::ssize(ids) - new_tokens; }
  bool in_prompt() const { return cached.tokens < prompt_size(); }
};

// One run over all requests of a source.
class Schedule {
 public:
  Schedule(const ScheduleParts& parts, const RequestSource& source, const GenerationEvents& events)
      : config_(parts.config),
        options_(parts.options),
        runner_(parts.runner),
        cache_(parts.cache),
        pool_(parts.pool),
        source_(source),
        events_(events) {
    for (auto slot = static_cast<int32_t>(options_.max_batch); slot > 0;) {
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
  // Admits prompts until one must wait for another to end, or `source_` has none.
  void admit() {
    while (static_cast<int64_t>(active_.size()) < options_.max_batch) {
      if (!next_) next_ = source_(active_.empty());
      if (!next_) return;
      if (next_->is_scored()) {
        // Active sequences take a step between two batches of scored requests.
        if (!score() || !active_.empty()) return;
        continue;
      }
      Active sequence;
      if (!cache_.admit(sequence.cached, next_->prompt, longest(*next_, config_.max_seq_len),
                        options_.share_prefixes && !config_.keeps_states())) {
        FP8KV_ASSERT(!active_.empty());  // every request fits alone, see check_pages
        return;
      }
      if (stats_.requests++ == 0) start_ = Clock::now();
      sequence.index = numbered_++;
      sequence.state = free_states_.back();
      free_states_.pop_back();
      sequence.request = *std::move(next_);
      next_.reset();
      sequence.ids = std::move(sequence.request.prompt);
      stats_.prompt_tokens += sequence.ids.size();
      stats_.prompt_pages += static_cast<uint64_t>(KvCache::pages_for(sequence.prompt_size()));
      stats_.shared_pages += static_cast<uint64_t>(KvCache::pages_for(sequence.cached.tokens));
      active_.push_back(std::move(sequence));
    }
  }

  // Whether the continuations of `next_` can be scored beside the active sequences. Active prompts
  // are read to their ends first, because their pages may be shared. In models with states, scoring
  // may use any slot, so it waits until no sequence is active.
  bool can_score() const {
    if (!next_ || !next_->is_scored()) return false;
    if (active_.empty()) return true;
    return !config_.keeps_states() &&
           KvCache::pages_for(tokens_read(next_->continuations)) <= cache_.free_pages() &&
           std::none_of(active_.begin(), active_.end(),
                        [](const Active& each) { return each.in_prompt(); });
  }

  // Scores `next_` and the scored requests right behind it. Returns false if `next_` must wait.
  bool score() {
    const auto begin = Clock::now();
    const size_t first = numbered_;
    std::vector<Alternatives> items;
    while (can_score() && static_cast<int64_t>(items.size()) < options_.max_batch) {
      items.push_back(std::move(next_->continuations));
      ++numbered_;
      next_ = source_(false);
    }
    if (items.empty()) return false;
    const ScoringParts parts = {config_, runner_, pool(), options_.chunk_rows, options_.states()};
    const auto scores = score_alternatives(parts, cache_, items);
    for (size_t i = 0; i < items.size(); ++i) {
      for (const Alternative& each : items[i]) {
        stats_.scored_tokens += each.ids.size() - static_cast<size_t>(each.begin);
      }
      stats_.scored_continuations += items[i].size();
      events_.scored(first + i, scores[i]);
    }
    stats_.scoring_seconds += seconds_since(begin);
    return true;
  }

  ThreadPool& pool() {
    if (!pool_) pool_.emplace(options_.threads > 0 ? options_.threads : usable_cores());
    return *pool_;
  }

  // Runs one step of prompts in order of arrival. So pages that a prompt shares with an earlier one
  // are computed before it or in the same step.
  void prefill() {
    int64_t rows_left = options_.chunk_rows;
    std::vector<StepPart> parts;
    std::vector<Active*> members;
    for (Active& sequence : active_) {
      if (rows_left == 0) break;
      if (!sequence.in_prompt()) continue;
      const int64_t begin = sequence.cached.tokens;
      const int64_t count = std::min(rows_left, sequence.prompt_size() - begin);
      extend(sequence, count);
      rows_left -= count;
      const std::span<const int32_t> ids(sequence.ids);
      StepPart part{ids.subspan(static_cast<size_t>(begin), static_cast<size_t>(count)),
                    &sequence.cached,
                    {},
                    sequence.state,
                    ids.first(static_cast<size_t>(begin))};
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
    accept_all(members, ids);
    retire();
  }

  // Draws one token for every sequence that is past its prompt.
  void decode() {
    std::vector<StepPart> parts;
    std::vector<Active*> members;
    for (Active& sequence : active_) {
      if (sequence.in_prompt()) continue;
      extend(sequence, 1);
      const std::span<const int32_t> ids(sequence.ids);
      parts.push_back({ids.last(1), &sequence.cached, sequence.request.sampling, sequence.state,
                       ids.first(ids.size() - 1)});
      members.push_back(&sequence);
    }
    if (parts.empty()) return;
    const auto begin = Clock::now();
    const std::vector<int32_t> ids = runner_.decode(parts, cache_);
    stats_.decode_seconds += seconds_since(begin);
    accept_all(members, ids);
    retire();
  }

  void extend(Active& sequence, int64_t tokens) {
    const bool extended = cache_.extend(sequence.cached, tokens);
    FP8KV_ASSERT(extended);  // admit() reserved all pages of the sequence
  }

  void accept_all(std::span<Active* const> members, std::span<const int32_t> ids) {
    std::vector<size_t> asked;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (events_.logits || members[i]->request.logprobs) asked.push_back(i);
    }
    const auto width = static_cast<size_t>(config_.vocab_size);
    logits_.resize(asked.size() * width);
    for (size_t k = 0; k < asked.size(); ++k) {
      runner_.drawn_logits(asked[k], std::span(logits_).subspan(k * width, width));
    }
    std::vector<TokenLogProbabilities> found(ids.size());
    if (!asked.empty()) {
      pool().run(static_cast<int64_t>(asked.size()), [&](int64_t job, int /*thread*/) {
        const auto k = static_cast<size_t>(job);
        const size_t i = asked[k];
        const std::span<const float> logits = std::span(logits_).subspan(k * width, width);
        if (events_.logits) events_.logits(members[i]->index, ids[i], logits);
        const std::optional<int64_t>& count = members[i]->request.logprobs;
        if (count) found[i] = log_probabilities(logits, ids[i], *count);
      });
    }
    for (size_t i = 0; i < ids.size(); ++i) accept(*members[i], ids[i], found[i]);
  }

  void accept(Active& sequence, int32_t id, const TokenLogProbabilities& found) {
    if (stats_.new_tokens == 0) stats_.first_token_seconds = seconds_since(start_);
    ++stats_.new_tokens;
    ++sequence.new_tokens;
    sequence.ids.push_back(id);
    sequence.stopped = is_in(options_.stop_ids, id) || is_in(sequence.request.stop_ids, id);
    if (sequence.stopped) return;
    if (sequence.request.logprobs) events_.logprobs(sequence.index, found);
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

  // Removes the sequences that have ended, and frees their pages and state slots.
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
  std::optional<ThreadPool>& pool_;
  const RequestSource& source_;
  const GenerationEvents& events_;
  std::deque<Active> active_;  // in order of arrival
  // A stack of slots, the lowest on top. So a slot is always below the number of requests.
  std::vector<int32_t> free_states_;
  std::optional<Request> next_;  // the next request, if it waits
  size_t numbered_ = 0;          // requests that have a number
  std::vector<float> logits_;    // [rows whose logits are wanted, vocab_size]
  Clock::time_point start_;
  GenerationStats stats_;
};

}  // namespace

GenerationStats run_schedule(const ScheduleParts& parts, const RequestSource& source,
                             const GenerationEvents& events) {
  return Schedule(parts, source, events).run();
}

}  // namespace fp8kv
