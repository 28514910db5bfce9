// An item of a task that generates: a prompt, and what the text is held to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "json/json.h"
#include "tasks/answer_pattern.h"

namespace fp8kv {

struct TextItem {
  std::string where;             // "'gsm8k.jsonl':3", for messages
  std::string subject;           // few-shot examples are of the same; "": all items are alike
  std::string prompt;            // of the item alone
  std::optional<Json> messages;  // the record that has them, in place of a prompt
  std::string answer;            // the right one; "" where `pattern` alone decides
  std::string pattern_text;      // as given; "": none
  std::optional<AnswerPattern> pattern;
  std::vector<std::string> stops;  // strings that end the text, which they are no part of
  int64_t max_tokens = 256;        // as lm-evaluation-harness 0.4.13 where it is not told
};

// What a text was worth.
struct TextGrade {
  std::vector<uint8_t> right;        // by score: 1 where it is
  std::vector<std::string> answers;  // by score: what was found in the text
};

}  // namespace fp8kv
