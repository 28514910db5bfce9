// The text before an item (examples with their answers), and its choices as token ids.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "generate/scorer.h"
#include "tasks/items/choice_item.h"

namespace fp8kv {

struct Example {
  std::string subject;
  std::string text;  // the prompt, its answer and a blank line
};
Example example_of(const std::string& subject, std::string_view prompt, std::string_view answer);

// Joins the first `count` of `examples` with this subject. Throws if there are fewer; the error
// begins with `where`, the place of the item.
std::string few_shot_text(const std::string& where, const std::string& subject,
                          std::span<const Example> examples, size_t count);

// The text that begins every prompt of the item's subject; "" without a subject.
std::string description_of(const ChoiceItem& item);

// Encodes a text, with the tokens that the tokenizer puts before every text.
using EncodeText = std::function<std::vector<int32_t>(std::string_view)>;

// Encodes `prompt` with each continuation as one text. `begin` is where the prompt alone would end;
// blanks at its end belong to the continuation. Callers check `begin`: 0 means an empty prompt,
// and ids.size() or more means that the continuation adds no token.
Alternatives encode_continuations(const std::string& prompt,
                                  std::span<const std::string> continuations,
                                  const EncodeText& encode);

// Throws: examples are prompts, and the item at `where` has messages.
[[noreturn]] void refuse_few_shot(const std::string& where);

// Returns `made`, an alternative for each choice of the item. Throws if a choice adds no token. The
// error names the item.
Alternatives checked_choices(const ChoiceItem& item, Alternatives made);
// Encodes every choice as a continuation, with a blank before it, and checks them likewise.
Alternatives encode_choices(const ChoiceItem& item, const std::string& prompt,
                            const EncodeText& encode);

}  // namespace fp8kv
