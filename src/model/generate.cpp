#include "model/generate.h"

#include <algorithm>
#include <chrono>
#include <deque>

#include "base/error.h"
#include "base/interrupt.h"
#include "model/model.h"
#include "model/step.h"

namespace fp8kv {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Tokens a prompt may come to occupy in the cache.
int64_t longest(const std::vector<int32_t>& prompt, const GenerationOptions& options,
                int64_t max_seq_len) {
  return std::min(static_cast<int64_t>(prompt.size()) + options.max_new_tokens, max_seq_len);
}

struct Active {
  size_t prompt;
  KvCache::Sequence cached;
  Sampler sampler;
  int32_t last_id = 0;
  int64_t new_tokens = 0;
};

class Generator {
 public:
  Generator(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
            KvCache& cache, std::span<const std::vector<int32_t>> prompts,
            const GenerationOptions& options, const GenerationEvents& events)
      : config_(config),
        backend_(backend),
        cache_(cache),
        prompts_(prompts),
        options_(options),
        events_(events),
        max_rows_(std::max(options.chunk_rows, options.max_batch)),
        max_len_(longest_of_all()),
        step_(backend, max_rows_, options.max_batch, KvCache::pages_for(max_len_)),
        forward_(backend, config, max_rows_, max_len_),
        x_(backend.allocate(forward_.activation_dtype(), Shape{max_rows_, config.dim})),
        logits_(backend.allocate(DType::f32, Shape{options.max_batch, config.vocab_size})) {
    const WeightLoader loader(checkpoint, config, backend);
    embedding_ = loader.embedding();
    for (int64_t i = 0; i < config.n_layers; ++i) layers_.push_back(loader.layer(i));
    head_ = loader.head();
  }

  GenerationStats run() {
    start_ = Clock::now();
    size_t next = 0;
    while (next < prompts_.size() || !active_.empty()) {
      while (next < prompts_.size() && admit(next)) ++next;
      if (!active_.empty()) decode();
    }
    return stats_;
  }

 private:
  int64_t longest_of_all() const {
    int64_t most = 1;
    for (const auto& prompt : prompts_) {
      most = std::max(most, longest(prompt, options_, config_.max_seq_len));
    }
    return most;
  }

  // Runs the prompt through the model and takes its first token; false when it has to wait for
  // another sequence to end. Pages for its whole life are reserved, so that it never has to stop
  // half-way.
  bool admit(size_t index) {
    const std::vector<int32_t>& prompt = prompts_[index];
    if (static_cast<int64_t>(active_.size()) == options_.max_batch) return false;
    const int64_t needed = KvCache::pages_for(longest(prompt, options_, config_.max_seq_len));
    if (needed > cache_.free_pages() - reserved_) {
      FP8KV_ASSERT(!active_.empty());  // generate() has checked that each fits alone
      return false;
    }
    const auto begin = Clock::now();
    Active sequence{index, {}, Sampler(options_.sampling, index)};
    prefill(sequence, prompt);
    stats_.prompt_tokens += prompt.size();
    stats_.prefill_seconds += seconds_since(begin);
    const float* row = download_logits(1);
    active_.push_back(std::move(sequence));
    accept(active_.back(), row);
    if (!retire_finished()) reserve();
    return true;
  }

  void prefill(Active& sequence, const std::vector<int32_t>& prompt) {
    for (size_t at = 0; at < prompt.size();) {
      const size_t count = std::min(prompt.size() - at, static_cast<size_t>(options_.chunk_rows));
      const bool extended = cache_.extend(sequence.cached, static_cast<int64_t>(count));
      FP8KV_ASSERT(extended);
      step_.clear();
      step_.add(std::span(prompt).subspan(at, count), sequence.cached);
      at += count;
      forward(at == prompt.size());
    }
  }

  void decode() {
    const auto begin = Clock::now();
    step_.clear();
    for (Active& sequence : active_) {
      const bool extended = cache_.extend(sequence.cached, 1);
      FP8KV_ASSERT(extended);
      step_.add(std::span(&sequence.last_id, 1), sequence.cached);
    }
    forward(true);
    const float* rows = download_logits(static_cast<int64_t>(active_.size()));
    for (size_t i = 0; i < active_.size(); ++i) {
      accept(active_[i], rows + i * static_cast<size_t>(config_.vocab_size));
    }
    stats_.decode_seconds += seconds_since(begin);
    retire_finished();
    reserve();
  }

  void forward(bool with_logits) {
    check_interrupt();
    step_.upload();
    const TensorView x = x_.first(step_.rows());
    forward_.embed(embedding_.view(), step_.ids(), x);
    for (size_t i = 0; i < layers_.size(); ++i) {
      const auto layer = static_cast<int64_t>(i);
      forward_.layer(layer, layers_[i], x, step_.batch(), cache_.layer(layer), std::nullopt,
                     LayerPart::whole);
    }
    if (!with_logits) return;
    const ConstTensorView rows = step_.last_rows();
    forward_.head(head_, x, rows, logits_.first(rows.shape[0]));
  }

  const float* download_logits(int64_t rows) {
    const TensorView view = logits_.first(rows);
    host_logits_.resize(static_cast<size_t>(view.shape.elements()));
    backend_.download(view, std::as_writable_bytes(std::span(host_logits_)));
    return host_logits_.data();
  }

  // Takes the next token of a sequence from its logits [vocab_size].
  void accept(Active& sequence, const float* logits) {
    sequence.last_id = sequence.sampler.pick({logits, static_cast<size_t>(config_.vocab_size)});
    if (stats_.new_tokens == 0) stats_.first_token_seconds = seconds_since(start_);
    ++stats_.new_tokens;
    ++sequence.new_tokens;
    if (!is_stop(sequence.last_id)) events_.token(sequence.prompt, sequence.last_id);
  }

  bool is_stop(int32_t id) const {
    return std::find(options_.stop_ids.begin(), options_.stop_ids.end(), id) !=
           options_.stop_ids.end();
  }

  std::optional<FinishReason> finished(const Active& sequence) const {
    if (is_stop(sequence.last_id)) return FinishReason::stop;
    if (sequence.new_tokens == options_.max_new_tokens) return FinishReason::length;
    if (sequence.cached.tokens == config_.max_seq_len) return FinishReason::context;
    return std::nullopt;
  }

  // Gives back the pages of sequences that have ended; true if there was one.
  bool retire_finished() {
    const size_t before = active_.size();
    for (size_t i = 0; i < active_.size();) {
      const std::optional<FinishReason> reason = finished(active_[i]);
      if (!reason) {
        ++i;
        continue;
      }
      events_.finished(active_[i].prompt, *reason);
      cache_.release(active_[i].cached);
      active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (active_.size() != before) reserve();
    return active_.size() != before;
  }

  // Counts the pages that active sequences have yet to take.
  void reserve() {
    reserved_ = 0;
    for (const Active& sequence : active_) {
      reserved_ +=
          KvCache::pages_for(longest(prompts_[sequence.prompt], options_, config_.max_seq_len)) -
          static_cast<int64_t>(sequence.cached.pages.size());
    }
  }

  const ModelConfig& config_;
  Backend& backend_;
  KvCache& cache_;
  std::span<const std::vector<int32_t>> prompts_;
  const GenerationOptions& options_;
  const GenerationEvents& events_;
  int64_t max_rows_;
  int64_t max_len_;
  Step step_;
  Forward forward_;
  Tensor x_;       // [max_rows, dim]
  Tensor logits_;  // [max_batch, vocab_size] f32
  std::vector<float> host_logits_;
  Tensor embedding_;
  std::vector<LayerWeights> layers_;
  HeadWeights head_;
  std::vector<Active> active_;
  int64_t reserved_ = 0;
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

int64_t pages_needed(std::span<const std::vector<int32_t>> prompts,
                     const GenerationOptions& options, int64_t max_seq_len) {
  std::vector<int64_t> pages;
  for (const auto& prompt : prompts) {
    pages.push_back(KvCache::pages_for(longest(prompt, options, max_seq_len)));
  }
  std::sort(pages.rbegin(), pages.rend());
  const size_t together = std::min(pages.size(), static_cast<size_t>(options.max_batch));
  int64_t sum = 0;
  for (size_t i = 0; i < together; ++i) sum += pages[i];
  return sum;
}

GenerationStats generate(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
                         KvCache& cache, std::span<const std::vector<int32_t>> prompts,
                         const GenerationOptions& options, const GenerationEvents& events) {
  for (size_t i = 0; i < prompts.size(); ++i) {
    const auto length = static_cast<int64_t>(prompts[i].size());
    if (length == 0) {
      throw Error(cat("prompt ", i, " has no tokens"),
                  "give it some text; this model's tokenizer adds no token of its own");
    }
    if (length >= config.max_seq_len) {
      throw Error(
          cat("prompt ", i, " has ", count_of(prompts[i].size(), "token"),
              ", the model's context is ", config.max_seq_len, " (max_position_embeddings)"),
          "shorten it");
    }
    const int64_t needed = KvCache::pages_for(longest(prompts[i], options, config.max_seq_len));
    if (needed > cache.free_pages()) {
      throw Error(cat("prompt ", i, " needs ", count_of(static_cast<uint64_t>(needed), "page"),
                      " of the KV cache, which has ", cache.free_pages()),
                  "shorten it or lower --max-new-tokens", ErrorKind::resource);
    }
  }
  return Generator(checkpoint, config, backend, cache, prompts, options, events).run();
}

}  // namespace fp8kv
