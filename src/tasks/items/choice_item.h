// An item of a multiple choice task: a prompt and the choices that may follow it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "json/json.h"

namespace fp8kv {

struct ChoiceItem {
  std::string where;                 // "'mmlu.jsonl':3", for messages
  std::string subject;               // few-shot examples have the same subject; "": no subjects
  std::string prompt;                // without few-shot examples
  std::optional<Json> messages;      // a record with messages, in place of `prompt`
  std::vector<std::string> choices;  // the texts behind the prompt, without the blank between
  size_t answer = 0;                 // index of the right choice
};

}  // namespace fp8kv
