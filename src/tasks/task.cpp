#include "tasks/task.h"

#include "base/error.h"

namespace fp8kv {

EncodeText prompt_encoder(const TaskModel& model) {
  return [&tokenizer = model.tokenizer](std::string_view text) {
    std::vector<int32_t> ids = tokenizer.prefix();
    const std::vector<int32_t> own = tokenizer.encode(text, false);
    ids.insert(ids.end(), own.begin(), own.end());
    return ids;
  };
}

std::deque<KvCache> make_task_caches(const TaskModel& model, int64_t pages, int64_t padding_pages) {
  std::deque<KvCache> caches;
  for (const TaskCache& each : model.caches) {
    caches.emplace_back(model.backend, model.config,
                        KvCacheOptions{each.dtype, pages, padding_pages}, each.scales);
  }
  return caches;
}

TaskReport run_task(const std::string& name, const Task& task, const TaskRequest& request,
                    const TaskModel& model, Log& log) {
  TaskReport report;
  report.task = name;
  report.file = utf8_name(request.file.string());
  report.form = task.form;
  report.generates = task.generates;
  report.few_shot = request.few_shot;
  report.scores = task.scores;
  report.main_score = task.main_score;
  report.baseline.name = model.caches[0].name;
  for (size_t i = 1; i < model.caches.size(); ++i) {
    report.caches.emplace_back().name = model.caches[i].name;
  }
  const AnswerItems answer = task.open(model);
  const PairedRun run{task.items.size(), uint64_t{kTaskBlock}, request.accept};
  for (const size_t item : run_paired(run, answer, report, log)) {
    report.items.push_back(task.items[item]);
  }
  return report;
}

}  // namespace fp8kv
