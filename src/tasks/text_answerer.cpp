#include "tasks/text_answerer.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "text/stop_text.h"

namespace fp8kv {
namespace {

// The most tokens of a cache, unless one sequence is longer: 32 sequences of some 500 tokens.
constexpr int64_t kMostCachedTokens = 16'384;

// A text during its generation.
struct GrowingText {
  GrowingText(const Tokenizer& tokenizer, const std::vector<std::string>& stop_strings,
              std::span<const KeptPrediction> baseline)
      : stream(tokenizer, {}, /*skip_special_tokens=*/true),
        stops(stop_strings),
        diverging(baseline) {}

  TokenStream stream;
  StopText stops;
  DivergingText diverging;
  GeneratedText generated;
};

std::vector<int32_t> prompt_ids(const TextItems& all, const TextItem& item, const TaskModel& model,
                                const EncodeText& encode) {
  if (!item.messages) return encode(all.before(item) + item.prompt);
  if (all.few_shot > 0) refuse_few_shot(item.where);
  return model.encode_messages(*item.messages);
}

// Returns the ids of stop strings that are special tokens. These have no text here, so only their
// ids can end a text.
std::vector<int32_t> stop_ids(const TextItem& item, const Tokenizer& tokenizer) {
  std::vector<int32_t> ids;
  for (const std::string& stop : item.stops) {
    const std::optional<int32_t> id = tokenizer.id_of(stop);
    if (id && tokenizer.is_special(*id)) ids.push_back(*id);
  }
  return ids;
}

std::vector<Request> requests_of(const TextItems& all, const TaskModel& model) {
  const EncodeText encode = prompt_encoder(model);
  std::vector<Request> requests;
  for (const TextItem& item : all.items) {
    Request request;
    request.prompt = prompt_ids(all, item, model, encode);
    request.max_new_tokens = item.max_tokens;
    request.stop_ids = stop_ids(item, model.tokenizer);
    const auto tokens = static_cast<int64_t>(request.prompt.size());
    if (tokens + item.max_tokens > model.config.max_seq_len) {
      throw Error(cat(item.where, ": the prompt has ", tokens, " tokens and its text may have ",
                      item.max_tokens, ", the model's context is ", model.config.max_seq_len, " (",
                      model.config.context_key, ")"),
                  "leave it out, give fewer few-shot examples, or, in generate, fewer max_tokens");
    }
    check_request(request, item.where, model.config);
    requests.push_back(std::move(request));
  }
  return requests;
}

GenerationOptions options_for(std::span<const Request> requests, const ModelConfig& config) {
  GenerationOptions options;
  options.stop_ids = config.eos_ids;
  options.max_batch = kTaskBlock;
  options.max_tokens = longest(requests, config.max_seq_len);
  options.max_requests = std::min(static_cast<int64_t>(requests.size()), kTaskBlock);
  return options;
}

int64_t cache_pages(std::span<const Request> requests, const GenerationOptions& options,
                    const ModelConfig& config) {
  const int64_t together = pages_needed(requests, options, config.max_seq_len);
  return std::max(KvCache::pages_for(options.max_tokens),
                  std::min(together, kMostCachedTokens / kPageSize));
}

}  // namespace

TextAnswerer::TextAnswerer(std::shared_ptr<const TextItems> all, const TaskModel& model)
    : all_(std::move(all)),
      tokenizer_(model.tokenizer),
      requests_(requests_of(*all_, model)),
      options_(options_for(requests_, model.config)),
      generator_(model.checkpoint, model.config, model.backend, options_),
      caches_(make_task_caches(model, cache_pages(requests_, options_, model.config),
                               generator_.runner().padding_pages())) {}

std::vector<GeneratedText> TextAnswerer::generate(size_t cache, std::span<const size_t> items,
                                                  Progress& progress) {
  const bool is_baseline = cache == 0;
  if (is_baseline) baseline_.assign(items.size(), {});
  FP8KV_ASSERT(baseline_.size() == items.size());
  std::deque<GrowingText> texts;
  for (size_t i = 0; i < items.size(); ++i) {
    texts.emplace_back(tokenizer_, all_->items[items[i]].stops, baseline_[i]);
  }
  size_t next = 0;
  const auto source = [&](bool /*wait*/) {
    return next < items.size() ? std::optional(requests_[items[next++]]) : std::nullopt;
  };
  GenerationEvents events;
  events.token = [&](size_t number, int32_t id) {
    GrowingText& text = texts[number];
    text.generated.ids.push_back(id);
    text.generated.text += text.stops.add(text.stream.add(id));
  };
  events.finished = [&](size_t number, FinishReason reason) {
    GrowingText& text = texts[number];
    text.generated.text += text.stops.add(text.stream.finish());
    text.generated.text += text.stops.finish();
    text.generated.finish = text.stops.found() ? FinishReason::stop : reason;
    if (!is_baseline) text.generated.divergence = text.diverging.sums();
    progress.advance();
  };
  events.ends = [&](size_t number) { return texts[number].stops.found(); };
  events.logits = [&](size_t number, int32_t id, std::span<const float> logits) {
    is_baseline ? baseline_[number].push_back(kept_prediction(id, logits))
                : texts[number].diverging.add(id, logits);
  };
  generator_.run(caches_[cache], source, events);
  std::vector<GeneratedText> generated;
  for (GrowingText& each : texts) generated.push_back(std::move(each.generated));
  return generated;
}

}  // namespace fp8kv
