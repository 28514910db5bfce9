#include "tasks/task_kinds.h"

#include <array>
#include <vector>

#include "base/error.h"
#include "tasks/choice_task.h"
#include "tasks/needle_task.h"
#include "tasks/text_task.h"

namespace fp8kv {

std::span<const TaskRow> task_rows() {
  static const std::array<TaskRow, 4> kRows = {{
      {"choices",
       "multiple choice, in the forms of MMLU, ARC and HellaSwag, or prompt, choices and answer",
       read_choice_task},
      {"gsm8k", "math problems in GSM8K's form, with the prompt and the filters of lm-eval",
       read_gsm8k_task},
      {"generate", "any prompt or messages; the text must be an answer or match a pattern",
       read_generate_task},
      {"needle",
       "numbers hidden in the text of the file, by length and depth; see --needle-lengths",
       read_needle_task},
  }};
  return kRows;
}

TaskArgument parse_task(const std::string& text) {
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  std::vector<std::string> names;
  for (const TaskRow& row : task_rows()) {
    names.push_back(row.name);
    if (row.name != name) continue;
    if (equals == text.npos || equals + 1 == text.size()) {
      throw Error(cat("is ", quote(text), ", expected ", name, "=FILE"),
                  cat("name the file of its items: --task ", name, "=FILE"), ErrorKind::usage);
    }
    return {&row, text.substr(equals + 1)};
  }
  throw Error(cat("is ", quote(text), ", expected ", join(names, " or "),
                  ", and a file behind =", did_you_mean(name, names)),
              "as in --task choices=mmlu.jsonl", ErrorKind::usage);
}

}  // namespace fp8kv
