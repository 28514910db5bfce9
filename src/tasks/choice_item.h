// An item of a multiple choice task: a prompt and what may follow it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fp8kv {

struct ChoiceItem {
  std::string where;                 // "'mmlu.jsonl':3", for messages
  std::string subject;               // few-shot examples are of the same; "": all items are alike
  std::string prompt;                // of the item alone
  std::vector<std::string> choices;  // as they follow the prompt, without the blank between
  size_t answer = 0;                 // index of the right one
};

}  // namespace fp8kv
