#include <algorithm>
#include <optional>
#include <variant>

#include "backend/open/open.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "checkpoint/generation_config.h"
#include "commands/commands.h"
#include "generate/cache_pages.h"
#include "generate/generate.h"
#include "inputs/cache_choice.h"
#include "inputs/chat_text.h"
#include "inputs/known_config.h"
#include "inputs/prompts/prompts.h"
#include "inputs/prompts/sampling_choice.h"
#include "show/answers/answers.h"
#include "text/tokenizer.h"

namespace fp8kv {
namespace {

std::string rate(uint64_t tokens, double seconds) {
  return cat(fixed(static_cast<double>(tokens) / std::max(seconds, 1e-9), 1), " tokens/s");
}

void report_figures(const GenerationStats& stats, Log& log) {
  // The first token of each prompt comes from its prefill.
  const uint64_t decoded = stats.new_tokens - stats.requests;
  log.note(cat("first token after ", fixed(stats.first_token_seconds * 1000, 1), " ms; prompt ",
               count_of(stats.prompt_tokens, "token"), " at ",
               rate(stats.prompt_tokens, stats.prefill_seconds), "; decode ",
               count_of(decoded, "token"),
               decoded == 0 ? "" : " at " + rate(decoded, stats.decode_seconds)));
  if (stats.shared_pages > 0) {
    log.note(cat("prefix: ", stats.shared_pages, " of ", count_of(stats.prompt_pages, "page"),
                 " shared"));
  }
}

void report_scoring(const GenerationStats& stats, Log& log) {
  log.note(cat("scored ", count_of(stats.scored_continuations, "continuation"), " of ",
               count_of(stats.scored_tokens, "token"), " in ", fixed(stats.scoring_seconds, 1),
               " s"));
}

// Reports generated ids that have no token. transformers lets a model generate such ids too.
void report_padding(uint64_t ids, Log& log) {
  if (ids == 0) return;
  log.note(cat("generated ", count_of(ids, "id"),
               " that the tokenizer has no token for: the model's vocabulary is larger, and the "
               "answers have no text there"));
}

void report_cache(const KvCache& cache, const ModelConfig& config, Log& log) {
  const auto here = kept_bytes_per_token(config, cache.dtype());
  const auto fit = [&](const CacheType& dtype) {
    return grouped(static_cast<uint64_t>(cache.pages() * kPageSize) * here /
                   kept_bytes_per_token(config, dtype));
  };
  log.note(cat("KV cache: ", grouped(here), " bytes a token; ",
               human_bytes(static_cast<uint64_t>(cache.pages() * kPageSize) * here), " hold ",
               count_of(static_cast<uint64_t>(cache.pages() * kPageSize), "token"),
               " (float16: ", fit(DType::f16), ", fp8: ", fit(DType::f8_e4m3), ")"));
}

// Finds the model's tokenizer. Throws if there is none, except with `json`: JSON can answer in
// token ids.
std::optional<Tokenizer> load_tokenizer(const Checkpoint& checkpoint, bool json) {
  std::optional<Tokenizer> found = Tokenizer::find_in(checkpoint.folder());
  if (found || json) return found;
  throw Error(cat(quote(checkpoint.folder().string()), ": has no ", Tokenizer::kFiles),
              "text needs the model's tokenizer; with --json, records with input_ids do not");
}

// The options of a generation for these prompts.
GenerationOptions generation_of(const RunOptions& options, const ModelConfig& config,
                                const Prompts& prompts, std::span<const Request> requests) {
  GenerationOptions generation{
      .stop_ids = config.eos_ids, .max_batch = options.max_batch, .threads = options.threads};
  generation.max_tokens = longest(requests, config.max_seq_len);
  if (!prompts.streams()) generation.max_requests = static_cast<int64_t>(requests.size());
  return generation;
}

// The number of pages of the cache. Its errors name --gpu-memory where that is given.
int64_t pages_of(const RunOptions& options, const Backend& backend, const Runner& runner,
                 uint64_t page_bytes, const CacheDemand& demand) {
  const auto choose = [&] {
    return choose_pages(options.gpu_memory, backend, runner, page_bytes, demand);
  };
  if (options.gpu_memory == 0) return choose();
  return with_context(cat("--gpu-memory ", human_bytes(options.gpu_memory)), choose);
}

// Takes the next prompt and begins its answer. Refuses records that cannot be used.
std::optional<Request> next_request(Prompts& prompts, Answers& answers, bool wait) {
  while (auto item = prompts.next(wait)) {
    if (const auto* refused = std::get_if<RefusedPrompt>(&*item)) {
      answers.refuse(*refused);
      continue;
    }
    Prompt prompt = std::get<Prompt>(*std::move(item));
    const Request request = prompt.request;
    answers.begin(std::move(prompt));
    return request;
  }
  return std::nullopt;
}

// The events of a generation go to its answers.
GenerationEvents events_for(Answers& answers) {
  return {
      [&](size_t prompt, int32_t id) { answers.token(prompt, id); },
      [&](size_t prompt, FinishReason reason) { answers.finished(prompt, reason); },
      [&](size_t prompt) { return answers.ended(prompt); },
      [&](size_t prompt, const TokenLogProbabilities& found) { answers.logprobs(prompt, found); },
      [&](size_t prompt, std::span<const ContinuationScore> scores) {
        answers.scored(prompt, scores);
      }};
}

}  // namespace

void run_command(const RunOptions& options) {
  const NothingToTidy only_prints;
  Log log(options.verbosity);
  const Checkpoint checkpoint = Checkpoint::open(options.model);
  const ModelConfig config = read_known_config(checkpoint, options.strict, log);
  const CacheChoice choice = choose_cache(options, checkpoint, config, log);
  const std::optional<Tokenizer> tokenizer = load_tokenizer(checkpoint, options.json);
  const Tokenizer* const words = tokenizer ? &*tokenizer : nullptr;
  const Request defaults =
      choose_defaults(options, read_generation_config(checkpoint.folder()), log);
  std::optional<ChatText> chats;
  if (tokenizer) chats.emplace(checkpoint.folder(), options.chat, *tokenizer, log);
  Prompts prompts(options, defaults, words, chats ? &*chats : nullptr, config);
  const auto [backend, why] = open_backend(options.device, options.threads);
  log.note(cat("computing on ", backend->describe(), why, "; cache in ", choice.why));

  const std::vector<Request> requests = prompts.requests();
  const GenerationOptions generation = generation_of(options, config, prompts, requests);
  Generator generator =
      with_way_out("use a smaller --max-batch, shorter prompts or fewer new tokens",
                   [&] { return Generator(checkpoint, config, *backend, generation); });
  const Runner& runner = generator.runner();
  const CacheDemand demand = prompts.streams() ? demand_of_stream(generation, config)
                                               : demand_of(requests, generation, config);
  const uint64_t page_bytes = kept_bytes_per_token(config, choice.dtype) * kPageSize;
  const int64_t pages = pages_of(options, *backend, runner, page_bytes, demand);
  KvCache cache = with_way_out("use a smaller --gpu-memory or an FP8 cache, or free memory", [&] {
    return KvCache(*backend, config, {choice.dtype, pages, runner.padding_pages()},
                   choice.scales ? &*choice.scales : nullptr);
  });
  prompts.limit_pages(pages);
  report_cache(cache, config, log);

  Answers answers(words, options.json, options.order);
  const auto next = [&](bool wait) { return next_request(prompts, answers, wait); };
  const GenerationEvents events = events_for(answers);
  const GenerationStats stats = with_way_out("use a smaller --max-batch or --gpu-memory", [&] {
    return with_unchanged(checkpoint, [&] { return generator.run(cache, next, events); });
  });
  report_padding(answers.ids_without_text(), log);
  if (stats.requests > 0) report_figures(stats, log);
  if (stats.scored_continuations > 0) report_scoring(stats, log);
  prompts.fail_late();
}

}  // namespace fp8kv
