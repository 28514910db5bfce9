// The task "choices": which of several continuations a model finds likeliest, with each cache.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "core/cache_type.h"
#include "core/config.h"
#include "core/scales.h"
#include "tasks/choice_forms.h"
#include "tasks/few_shot.h"
#include "tasks/recovery_test.h"
#include "tasks/task_report.h"

namespace fp8kv {

// A cache that takes part.
struct TaskCache {
  std::string name;
  ModelCache dtype;
  const KvScales* scales = nullptr;  // null: 1 everywhere
};

// The model that answers.
struct TaskModel {
  const Checkpoint& checkpoint;
  const ModelConfig& config;
  Backend& backend;
  EncodeText encode;
  std::vector<TaskCache> caches;  // the baseline first
  int threads = 0;
};

struct TaskRequest {
  std::filesystem::path file;
  uint64_t items = 0;  // at most; 0: all
  uint64_t few_shot = 0;
  std::filesystem::path few_shot_from;  // "": the first items, which are then not asked
  std::optional<Acceptance> accept;
};

struct ChoiceItems {
  const ChoiceForm* form = nullptr;
  std::vector<ChoiceItem> items;
  std::vector<ChoiceItem> examples;  // few-shot examples are among these
};

// Throws for a file without items, one with items of two forms, and as read_choice_item does.
ChoiceItems read_choice_items(const TaskRequest& request);

// Throws, naming the item, where one is longer than the model's context.
TaskReport run_choices(const ChoiceItems& items, const TaskRequest& request, const TaskModel& model,
                       Log& log);

}  // namespace fp8kv
