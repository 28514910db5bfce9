// Text that comes before an item: examples with their answers. And choices behind it, as ids.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "generate/scorer.h"
#include "tasks/choice_item.h"

namespace fp8kv {

struct Example {
  std::string subject;
  std::string text;  // the prompt and its answer
};
Example example_of(const std::string& subject, std::string_view prompt, std::string_view answer);

// The first `count` of `examples` with this subject. Throws, naming the item, where there are
// fewer.
std::string few_shot_text(const std::string& where, const std::string& subject,
                          std::span<const Example> examples, size_t count);

// The beginning of every prompt of a subject; "" for items without one.
std::string description_of(const ChoiceItem& item);

// Text as ids, with what the tokenizer puts before any text.
using EncodeText = std::function<std::vector<int32_t>(std::string_view)>;

// The ids of each continuation behind `prompt`. Both are encoded as one text and parted where the
// prompt alone would end; blanks at the end of the prompt belong to the continuation. Callers check
// `begin`: 0 means an empty prompt, ids.size() or more means a continuation without a token.
Alternatives encode_continuations(const std::string& prompt,
                                  std::span<const std::string> continuations,
                                  const EncodeText& encode);

// Encodes every choice as a continuation, with a blank before it.
// Throws, naming the item, for a choice that adds no token.
Alternatives encode_choices(const ChoiceItem& item, const std::string& prompt,
                            const EncodeText& encode);

}  // namespace fp8kv
