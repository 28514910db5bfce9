#include "eval/greedy_texts.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/interrupt.h"
#include "eval/greedy_probe.h"
#include "generate/generate.h"

namespace fp8kv {
namespace {

using Texts = std::vector<std::vector<int32_t>>;

Texts continuations(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
                    const ModelCache& cache, const KvScales* scales, const Texts& prompts,
                    int64_t new_tokens, Progress& progress) {
  std::vector<Request> requests;
  for (const auto& prompt : prompts) requests.push_back({prompt, new_tokens});
  const GenerationOptions options{.stop_ids = config.eos_ids};
  Texts texts(prompts.size());
  generate(checkpoint, config, backend,
           {cache, pages_needed(requests, options, config.max_seq_len)}, scales, requests, options,
           {[&](size_t prompt, int32_t id) {
              check_interrupt();
              texts[prompt].push_back(id);
              progress.advance();
            },
            [](size_t /*prompt*/, FinishReason /*reason*/) {}});
  return texts;
}

// The prompts on which the cache parted, the earliest place first.
std::vector<size_t> parted_prompts(const GreedyFigures& greedy) {
  std::vector<size_t> prompts(greedy.agreed.size());
  std::iota(prompts.begin(), prompts.end(), size_t{0});
  std::erase_if(prompts, [&](size_t i) { return greedy.agreed[i] == greedy.length[i]; });
  std::stable_sort(prompts.begin(), prompts.end(),
                   [&](size_t a, size_t b) { return greedy.agreed[a] < greedy.agreed[b]; });
  return prompts;
}

}  // namespace

std::vector<PartedIds> parted_greedy_texts(const Checkpoint& checkpoint, const ModelConfig& config,
                                           Backend& backend,
                                           const std::vector<std::vector<int32_t>>& windows,
                                           const EvalOptions& options, const CandidateReport& cache,
                                           size_t most, Log& log) {
  const Texts all = greedy_prompts(windows);
  std::vector<size_t> chosen = parted_prompts(cache.greedy);
  chosen.resize(std::min(chosen.size(), most));
  if (chosen.empty()) return {};
  FP8KV_ASSERT(cache.greedy.agreed.size() == all.size());
  Texts prompts;
  for (const size_t i : chosen) prompts.push_back(all[i]);
  Progress progress(log, "greedy texts",
                    2 * static_cast<uint64_t>(options.greedy_tokens) * prompts.size());
  const EvalReference* against = options.against;
  const Texts baseline =
      continuations(against ? against->checkpoint : checkpoint, against ? against->config : config,
                    backend, options.baseline, nullptr, prompts, options.greedy_tokens, progress);
  const Texts other = continuations(checkpoint, config, backend, cache_of(cache, config),
                                    cache.scales ? &*cache.scales : nullptr, prompts,
                                    options.greedy_tokens, progress);
  std::vector<PartedIds> texts;
  for (size_t i = 0; i < prompts.size(); ++i) texts.push_back({prompts[i], baseline[i], other[i]});
  return texts;
}

}  // namespace fp8kv
