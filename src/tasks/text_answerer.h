// A model with the caches that write texts for items.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "base/log.h"
#include "generate/generate.h"
#include "model/kv_cache.h"
#include "tasks/read_items.h"
#include "tasks/task.h"
#include "tasks/text_item.h"

namespace fp8kv {

using TextItems = ItemSet<TextItem>;

class TextAnswerer {
 public:
  // Throws, naming the item, where prompt and answer may have more tokens than the model's context.
  TextAnswerer(std::shared_ptr<const TextItems> all, const TaskModel& model);

  // The greedy texts of a cache, 0 the baseline, to items by number.
  std::vector<GeneratedText> generate(size_t cache, std::span<const size_t> items,
                                      Progress& progress);

 private:
  std::shared_ptr<const TextItems> all_;
  const Tokenizer& tokenizer_;
  std::vector<Request> requests_;
  GenerationOptions options_;
  Generator generator_;
  std::deque<KvCache> caches_;
};

}  // namespace fp8kv
