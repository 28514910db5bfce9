// A model and the caches with which it writes texts for items.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "base/log.h"
#include "generate/generate.h"
#include "model/cache/kv_cache.h"
#include "tasks/compare/text_divergence.h"
#include "tasks/items/text_item.h"
#include "tasks/read_items.h"
#include "tasks/task.h"

namespace fp8kv {

using TextItems = ItemSet<TextItem>;

class TextAnswerer {
 public:
  // Throws if a prompt and its answer may exceed the model's context. The error names the item.
  TextAnswerer(std::shared_ptr<const TextItems> all, const TaskModel& model);

  // Writes greedy texts for the numbered items with one cache. Cache 0 is the baseline. REQUIRES
  // that it wrote texts for the same items last, before any other cache does.
  std::vector<GeneratedText> generate(size_t cache, std::span<const size_t> items,
                                      Progress& progress);

 private:
  std::shared_ptr<const TextItems> all_;
  const Tokenizer& tokenizer_;
  std::vector<Request> requests_;
  GenerationOptions options_;
  Generator generator_;
  std::deque<KvCache> caches_;
  std::vector<std::vector<KeptPrediction>> baseline_;  // by item of the last call with cache 0
};

}  // namespace fp8kv
