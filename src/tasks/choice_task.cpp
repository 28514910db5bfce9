#include "tasks/choice_task.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/error.h"
#include "generate/scorer.h"
#include "tasks/choice_score.h"
#include "tasks/items/choice_forms.h"
#include "tasks/read_items.h"

namespace fp8kv {
namespace {

using ChoiceItems = ItemSet<ChoiceItem>;

std::vector<Alternatives> encode_items(const ChoiceItems& all, const TaskModel& model) {
  const EncodeText encode = prompt_encoder(model);
  std::vector<Alternatives> encoded;
  for (const ChoiceItem& item : all.items) {
    if (item.messages && all.few_shot > 0) refuse_few_shot(item.where);
    encoded.push_back(
        item.messages
            ? checked_choices(item, model.encode_answers(*item.messages, item.choices))
            : encode_choices(item, cat(description_of(item), all.before(item), item.prompt),
                             encode));
    const int64_t tokens = tokens_read(encoded.back());
    if (tokens <= model.config.max_seq_len) continue;
    throw Error(cat(item.where, ": the item has ", tokens, " tokens, the model's context is ",
                    model.config.max_seq_len, " (", model.config.context_key, ")"),
                "leave it out, or give fewer few-shot examples");
  }
  return encoded;
}

int64_t longest_of(std::span<const Alternatives> encoded) {
  int64_t longest = 0;
  for (const Alternatives& each : encoded) longest = std::max(longest, tokens_read(each));
  return longest;
}

TaskAnswer choice_answer(const ChoiceItem& item, std::span<const ContinuationScore> scores) {
  const ChoiceOutcome outcome = choice_outcome(item, scores);
  return {{static_cast<uint8_t>(outcome.acc), static_cast<uint8_t>(outcome.acc_norm)},
          {item.choices[outcome.chosen], item.choices[outcome.chosen_norm]},
          std::nullopt};
}

// A model and the caches with which it scores the choices.
class ChoiceAnswerer {
 public:
  ChoiceAnswerer(std::shared_ptr<const ChoiceItems> all, const TaskModel& model)
      : all_(std::move(all)),
        encoded_(encode_items(*all_, model)),
        scorer_(model.checkpoint, model.config, model.backend,
                {kTaskBlock, longest_of(encoded_), model.threads}),
        caches_(make_task_caches(model, scorer_pages(encoded_, kTaskBlock),
                                 scorer_.runner().padding_pages())) {}

  std::vector<TaskAnswer> answer(size_t cache, std::span<const size_t> items, Progress& progress) {
    std::vector<Alternatives> asked;
    for (const size_t item : items) asked.push_back(encoded_[item]);
    const auto scores = scorer_.run(caches_[cache], asked);
    std::vector<TaskAnswer> answers;
    for (size_t i = 0; i < items.size(); ++i) {
      answers.push_back(choice_answer(all_->items[items[i]], scores[i]));
    }
    progress.advance(items.size());
    return answers;
  }

 private:
  std::shared_ptr<const ChoiceItems> all_;
  std::vector<Alternatives> encoded_;
  Scorer scorer_;
  std::deque<KvCache> caches_;
};

}  // namespace

Task read_choice_task(const TaskRequest& request) {
  const ChoiceForm* form = nullptr;
  const auto read = [&](const Json& record) {
    const ChoiceForm& own = choice_form_of(record);
    if (form == nullptr) form = &own;
    if (form != &own) {
      fail(record.where(), ": is of the form ", own.name, ", and the items before it are of ",
           form->name);
    }
    return read_choice_item(record);
  };
  const auto example = [](const ChoiceItem& item) {
    if (item.messages) refuse_few_shot(item.where);
    return example_of(item.subject, item.prompt, item.choices[item.answer]);
  };
  const auto all = std::make_shared<const ChoiceItems>(read_items(request, read, example));
  Task task;
  task.form = form->name;
  task.scores = {"acc", "acc_norm"};
  task.main_score = form->by_length ? 1 : 0;
  for (const ChoiceItem& each : all->items) {
    task.items.push_back({each.where, each.choices[each.answer]});
  }
  task.open = [all](const TaskModel& model) -> AnswerItems {
    const auto answerer = std::make_shared<ChoiceAnswerer>(all, model);
    return [answerer](size_t cache, std::span<const size_t> items, Progress& progress) {
      return answerer->answer(cache, items, progress);
    };
  };
  return task;
}

}  // namespace fp8kv
