#include "eval/greedy_probe.h"

#include <algorithm>

#include "base/interrupt.h"
#include "generate/generate.h"

namespace fp8kv {
namespace {

constexpr size_t kProbes = 8;
constexpr size_t kPromptTokens = 32;
constexpr size_t kFewestPromptTokens = 4;

}  // namespace

std::vector<std::vector<int32_t>> greedy_prompts(const std::vector<std::vector<int32_t>>& windows) {
  std::vector<const std::vector<int32_t>*> usable;
  for (const auto& window : windows) {
    if (window.size() >= kFewestPromptTokens) usable.push_back(&window);
  }
  std::vector<std::vector<int32_t>> prompts;
  const size_t count = std::min(kProbes, usable.size());
  for (size_t i = 0; i < count; ++i) {
    const std::vector<int32_t>& window = *usable[i * usable.size() / count];
    const size_t length = std::min(kPromptTokens, window.size());
    prompts.emplace_back(window.begin(), window.begin() + static_cast<ptrdiff_t>(length));
  }
  return prompts;
}

std::vector<GreedyProbe> make_greedy_probes(const ModelOnBackend& model, DType dtype,
                                            const std::vector<std::vector<int32_t>>& windows,
                                            int64_t new_tokens) {
  const auto& [checkpoint, config, backend] = model;
  const std::vector<std::vector<int32_t>> prompts = greedy_prompts(windows);
  std::vector<GreedyProbe> probes;
  if (prompts.empty() || new_tokens == 0) return probes;
  for (const auto& prompt : prompts) {
    probes.push_back({prompt, static_cast<int64_t>(prompt.size()) - 1, 0});
  }
  std::vector<Request> requests;
  for (const auto& prompt : prompts) requests.push_back({prompt, new_tokens});
  const GenerationOptions options{.stop_ids = config.eos_ids};
  const int64_t pages = pages_needed(requests, options, config.max_seq_len);
  const KvCacheOptions cache{dtype, pages};
  const GenerationEvents events{[&](size_t prompt, int32_t id) {
                                  check_interrupt();
                                  probes[prompt].ids.push_back(id);
                                  ++probes[prompt].decisions;
                                },
                                [&](size_t prompt, FinishReason reason) {
                                  // The last token leads to no further choice, unless a stop
                                  // followed it.
                                  GreedyProbe& probe = probes[prompt];
                                  reason == FinishReason::stop ? void(++probe.decisions)
                                                               : probe.ids.pop_back();
                                }};
  generate(checkpoint, config, backend, {cache, nullptr, requests, options, events});
  return probes;
}

}  // namespace fp8kv
