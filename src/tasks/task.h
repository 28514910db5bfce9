// A task whose items are read, and the report of several caches that answer them. What a kind of
// task asks, and how an answer counts, is the reader's; see task_kinds.h.
#pragma once

#include <cstdint>
#include <deque>
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
#include "json/json.h"
#include "model/kv_cache.h"
#include "tasks/few_shot.h"
#include "tasks/paired_run.h"
#include "tasks/recovery_test.h"
#include "tasks/task_report.h"
#include "text/tokenizer.h"

namespace fp8kv {

// A cache that takes part.
struct TaskCache {
  std::string name;
  ModelCache dtype;
  const KvScales* scales = nullptr;  // null: 1 everywhere
};

// The ids of a record's messages, up to where the model answers.
using EncodeMessages = std::function<std::vector<int32_t>(const Json& record)>;

// The model that answers.
struct TaskModel {
  const Checkpoint& checkpoint;
  const ModelConfig& config;
  Backend& backend;
  const Tokenizer& tokenizer;
  EncodeMessages encode_messages;
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

struct Task {
  std::string form;
  bool generates = false;  // answers have texts
  std::vector<std::string> scores;
  size_t main_score = 0;
  std::vector<TaskItem> items;
  // Puts the model and its caches on the backend, and gives what answers items by number. Throws,
  // naming the item, where one is longer than the model's context. The model must outlive it.
  std::function<AnswerItems(const TaskModel& model)> open;
};

// Items that every cache is asked before the next ones come.
inline constexpr int64_t kTaskBlock = 32;

// Asks every cache of the model. `name` is the task's.
TaskReport run_task(const std::string& name, const Task& task, const TaskRequest& request,
                    const TaskModel& model, Log& log);

// Text as ids, with what the tokenizer puts before any text.
EncodeText prompt_encoder(const TaskModel& model);

// The caches of the model, each with so many pages.
std::deque<KvCache> make_task_caches(const TaskModel& model, int64_t pages, int64_t padding_pages);

}  // namespace fp8kv
