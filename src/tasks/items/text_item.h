// An item of a task that generates: a prompt, and the rules that grade the text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "json/json.h"
#include "tasks/items/answer_pattern.h"

namespace fp8kv {

struct TextItem {
  std::string where;             // "'gsm8k.jsonl':3", for messages
  std::string subject;           // few-shot examples have the same subject; "": no subjects
  std::string prompt;            // without few-shot examples
  std::optional<Json> messages;  // a record with messages, in place of `prompt`
  std::string answer;            // the right answer; "" if `pattern` alone decides
  std::string pattern_text;      // as in the record; "": none
  std::optional<AnswerPattern> pattern;
  std::vector<std::string> stops;  // strings that end the text and are not part of it
  int64_t max_tokens = 256;        // the default of lm-evaluation-harness 0.4.13
};

// The grade of a text.
struct TextGrade {
  std::vector<uint8_t> right;        // by score: 1 for a right answer
  std::vector<std::string> answers;  // by score: the answer found in the text
};

}  // namespace fp8kv
