#include "tasks/choice_task.h"

#include <algorithm>
#include <deque>
#include <map>

#include "base/error.h"
#include "generate/scorer.h"
#include "model/kv_cache.h"
#include "tasks/choice_score.h"
#include "tasks/paired_run.h"
#include "tasks/task_file.h"

namespace fp8kv {
namespace {

constexpr int64_t kItemsAtOnce = 32;

void read_items(const std::filesystem::path& path, const ChoiceForm*& form,
                const std::function<bool(ChoiceItem item)>& take) {
  for_each_item(path, [&](const Json& record) {
    const ChoiceForm& own = choice_form_of(record);
    if (form == nullptr) form = &own;
    if (form != &own) {
      fail(record.where(), ": is of the form ", own.name, ", and the items before it are of ",
           form->name);
    }
    return take(read_choice_item(record));
  });
}

std::vector<Alternatives> encode_items(const ChoiceItems& all, const TaskRequest& request,
                                       const TaskModel& model) {
  std::vector<Alternatives> encoded;
  for (const ChoiceItem& item : all.items) {
    const std::string prompt = few_shot_prompt(item, all.examples, request.few_shot);
    encoded.push_back(encode_choices(item, prompt, model.encode));
    const int64_t tokens = tokens_read(encoded.back());
    if (tokens <= model.config.max_seq_len) continue;
    throw Error(cat(item.where, ": the item has ", tokens, " tokens, the model's context is ",
                    model.config.max_seq_len, " (", model.config.context_key, ")"),
                "leave it out, or give fewer few-shot examples");
  }
  return encoded;
}

TaskAnswer task_answer(const ChoiceItem& item, std::span<const ContinuationScore> scores) {
  const ChoiceOutcome outcome = choice_outcome(item, scores);
  return {{static_cast<uint8_t>(outcome.acc), static_cast<uint8_t>(outcome.acc_norm)},
          {item.choices[outcome.chosen], item.choices[outcome.chosen_norm]}};
}

}  // namespace

ChoiceItems read_choice_items(const TaskRequest& request) {
  ChoiceItems all;
  const bool own_examples = request.few_shot > 0 && request.few_shot_from.empty();
  std::map<std::string, uint64_t> kept;  // examples, by subject
  read_items(request.file, all.form, [&](ChoiceItem item) {
    const bool is_example = own_examples && kept[item.subject] < request.few_shot;
    if (is_example) ++kept[item.subject];
    (is_example ? all.examples : all.items).push_back(std::move(item));
    return request.items == 0 || all.items.size() < request.items;
  });
  if (request.few_shot > 0 && !own_examples) {
    read_items(request.few_shot_from, all.form, [&](ChoiceItem item) {
      all.examples.push_back(std::move(item));
      return true;
    });
  }
  if (all.items.empty()) {
    throw Error(cat(quote(request.file.string()), ": has no items",
                    own_examples ? " beside the few-shot examples" : ""),
                own_examples ? "give examples of their own with --few-shot-from" : "");
  }
  return all;
}

TaskReport run_choices(const ChoiceItems& all, const TaskRequest& request, const TaskModel& model,
                       Log& log) {
  TaskReport report;
  report.task = "choices";
  report.file = utf8_name(request.file.string());
  report.form = all.form->name;
  report.few_shot = request.few_shot;
  report.scores = {"acc", "acc_norm"};
  report.main_score = all.form->by_length ? 1 : 0;
  report.baseline.name = model.caches[0].name;
  for (size_t i = 1; i < model.caches.size(); ++i) {
    report.caches.emplace_back().name = model.caches[i].name;
  }
  const std::vector<Alternatives> encoded = encode_items(all, request, model);
  int64_t longest = 0;
  for (const Alternatives& each : encoded) longest = std::max(longest, tokens_read(each));
  Scorer scorer(model.checkpoint, model.config, model.backend, kItemsAtOnce, longest,
                model.threads);
  std::deque<KvCache> caches;
  for (const TaskCache& each : model.caches) {
    caches.emplace_back(model.backend, model.config,
                        KvCacheOptions{each.dtype, scorer_pages(encoded, kItemsAtOnce),
                                       scorer.runner().padding_pages()},
                        each.scales);
  }
  const AnswerItems answer = [&](size_t cache, std::span<const size_t> items) {
    std::vector<Alternatives> asked;
    for (const size_t item : items) asked.push_back(encoded[item]);
    const auto scores = scorer.run(caches[cache], asked);
    std::vector<TaskAnswer> answers;
    for (size_t i = 0; i < items.size(); ++i) {
      answers.push_back(task_answer(all.items[items[i]], scores[i]));
    }
    return answers;
  };
  const PairedRun run{all.items.size(), uint64_t{kItemsAtOnce}, request.accept};
  for (const size_t item : run_paired(run, answer, report, log)) {
    const ChoiceItem& asked = all.items[item];
    report.items.push_back({asked.where, asked.choices[asked.answer]});
  }
  return report;
}

}  // namespace fp8kv
