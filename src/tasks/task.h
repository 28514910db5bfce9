// Asks several caches the items of a task and reports the answers. The readers of task_kinds.h
// decide what a kind of task asks and how it grades an answer.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "core/cache/cache_type.h"
#include "core/model/config.h"
#include "core/scales/scales.h"
#include "json/json.h"
#include "model/cache/kv_cache.h"
#include "tasks/compare/paired_run.h"
#include "tasks/compare/recovery_test.h"
#include "tasks/compare/task_report.h"
#include "tasks/items/few_shot.h"
#include "tasks/items/needle.h"
#include "text/tokenizer.h"

namespace fp8kv {

// A cache that answers a task.
struct TaskCache {
  std::string name;
  ModelCache dtype;
  const KvScales* scales = nullptr;  // null: every scale is 1
};

// Encodes a record's messages, up to where the model's answer begins.
using EncodeMessages = std::function<std::vector<int32_t>(const Json& record)>;
// Encodes a record's messages with each of `answers` as the model's answer. Blanks at the end of
// the rendered messages belong to the answer, like in encode_continuations().
using EncodeAnswers =
    std::function<Alternatives(const Json& record, std::span<const std::string> answers)>;

// The model that answers a task, with its caches.
struct TaskModel {
  const Checkpoint& checkpoint;
  const ModelConfig& config;
  Backend& backend;
  const Tokenizer& tokenizer;
  EncodeMessages encode_messages;
  EncodeAnswers encode_answers;
  std::vector<TaskCache> caches;  // the baseline first
  int threads = 0;
};

struct TaskRequest {
  std::filesystem::path file;
  uint64_t items = 0;  // the most items to ask; 0: all
  uint64_t few_shot = 0;
  std::filesystem::path few_shot_from;  // "": the first items are examples and are not asked
  std::optional<Acceptance> accept;
  NeedleOptions needle = {};  // for the task of that name
};

struct Task {
  std::string form;
  bool generates = false;  // whether answers have texts
  std::vector<std::string> scores;
  size_t main_score = 0;
  std::vector<TaskItem> items;
  // Loads the model and its caches onto the backend. Returns a function that answers items by
  // number; `model` must outlive it. Throws if an item is longer than the model's context. The
  // error names the item.
  std::function<AnswerItems(const TaskModel& model)> open;
};

// Items in a block. Every cache answers a block before the next one begins.
inline constexpr int64_t kTaskBlock = 32;

// Asks every cache of the model. `name` is the name of the task.
TaskReport run_task(const std::string& name, const Task& task, const TaskRequest& request,
                    const TaskModel& model, Log& log);

// Returns a function that encodes prompts. The tokenizer's prefix (BOS) comes first.
EncodeText prompt_encoder(const TaskModel& model);

// Makes the caches of the model, each with `pages` pages.
std::deque<KvCache> make_task_caches(const TaskModel& model, int64_t pages, int64_t padding_pages);

}  // namespace fp8kv
