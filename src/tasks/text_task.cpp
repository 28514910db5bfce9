#include "tasks/text_task.h"

#include <memory>
#include <utility>

#include "base/error.h"
#include "tasks/items/gsm8k.h"
#include "tasks/items/text_form.h"
#include "tasks/text_answerer.h"

namespace fp8kv {
namespace {

using GradeText = TextGrade (*)(const TextItem& item, std::string_view text);

Example text_example(const TextItem& item) {
  if (item.messages || item.answer.empty()) {
    throw Error(cat(item.where, ": is to be a few-shot example, and has no ",
                    item.messages ? "prompt" : "answer"),
                "give examples with a prompt and an answer with --few-shot-from");
  }
  return example_of(item.subject, item.prompt, item.answer);
}

// Makes a task from its items. The caller fills in `form` and the scores.
Task text_task(TextItems read, GradeText grade) {
  const auto all = std::make_shared<const TextItems>(std::move(read));
  Task task;
  task.generates = true;
  for (const TextItem& each : all->items) {
    task.items.push_back({each.where, each.answer.empty() ? each.pattern_text : each.answer});
  }
  task.open = [all, grade](const TaskModel& model) -> AnswerItems {
    const auto answerer = std::make_shared<TextAnswerer>(all, model);
    return [all, grade, answerer](size_t cache, std::span<const size_t> items, Progress& progress) {
      std::vector<TaskAnswer> answers;
      for (GeneratedText& text : answerer->generate(cache, items, progress)) {
        TextGrade graded = grade(all->items[items[answers.size()]], text.text);
        answers.push_back({std::move(graded.right), std::move(graded.answers), std::move(text)});
      }
      return answers;
    };
  };
  return task;
}

}  // namespace

Task read_gsm8k_task(const TaskRequest& request) {
  Task task = text_task(read_items(request, read_gsm8k_item, text_example), grade_gsm8k);
  task.form = "gsm8k";
  task.scores = {"strict-match", "flexible-extract"};
  for (TaskItem& item : task.items) item.answer = gsm8k_number(item.answer);
  return task;
}

Task read_generate_task(const TaskRequest& request) {
  std::string form;
  const auto read = [&](const Json& record) {
    TextItem item = read_text_item(record);
    const std::string own = item.messages ? "messages" : "prompt";
    if (form.empty()) form = own;
    if (form != own) {
      fail(item.where, ": has ", own, ", and the items before it have ", form, ", expected ", form);
    }
    return item;
  };
  Task task = text_task(read_items(request, read, text_example), grade_text);
  task.form = form;
  task.scores = {"match"};
  return task;
}

}  // namespace fp8kv
