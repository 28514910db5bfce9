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

Texts continuations(const ModelOnBackend& model, const ModelCache& cache, const KvScales* scales,
                    const Texts& prompts, int64_t new_tokens, Progress& progress) {
  const auto& [checkpoint, config, backend] = model;
  std::vector<Request> requests;
  for (const auto& prompt : prompts) requests.push_back({prompt, new_tokens});
  const GenerationOptions options{.stop_ids = config.eos_ids};
  Texts texts(prompts.size());
  generate(checkpoint, config, backend,
           {{cache, pages_needed(requests, options, config.max_seq_len)},
            scales,
            requests,
            options,
            {[&](size_t prompt, int32_t id) {
               check_interrupt();
               texts[prompt].push_back(id);
               progress.advance();
             },
             [](size_t /*prompt*/, FinishReason /*reason*/) {}}});
  return texts;
}

}  // namespace

std::vector<std::vector<int32_t>> parted_prompts(const Texts& windows, const GreedyFigures& greedy,
                                                 size_t most) {
  const Texts all = greedy_prompts(windows);
  std::vector<size_t> parted(greedy.agreed.size());
  std::iota(parted.begin(), parted.end(), size_t{0});
  std::erase_if(parted, [&](size_t i) { return greedy.agreed[i] == greedy.length[i]; });
  FP8KV_ASSERT(parted.empty() || greedy.agreed.size() == all.size());
  std::stable_sort(parted.begin(), parted.end(),
                   [&](size_t a, size_t b) { return greedy.agreed[a] < greedy.agreed[b]; });
  parted.resize(std::min(parted.size(), most));
  Texts prompts;
  for (const size_t i : parted) prompts.push_back(all[i]);
  return prompts;
}

std::vector<PartedIds> parted_greedy_texts(const ModelOnBackend& model, const Texts& prompts,
                                           const EvalOptions& options, const CandidateReport& cache,
                                           Log& log) {
  const auto& [checkpoint, config, backend] = model;
  if (prompts.empty()) return {};
  Progress progress(log, "greedy texts",
                    2 * static_cast<uint64_t>(options.greedy_tokens) * prompts.size());
  const EvalReference* against = options.against;
  const Texts baseline = continuations(
      {against ? against->checkpoint : checkpoint, against ? against->config : config, backend},
      options.baseline, nullptr, prompts, options.greedy_tokens, progress);
  const Texts other =
      continuations(model, cache_of(cache, config), cache.scales ? &*cache.scales : nullptr,
                    prompts, options.greedy_tokens, progress);
  std::vector<PartedIds> texts;
  for (size_t i = 0; i < prompts.size(); ++i) texts.push_back({prompts[i], baseline[i], other[i]});
  return texts;
}

}  // namespace fp8kv
