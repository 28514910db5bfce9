// Prints the results of tasks, as text and as JSON.
#pragma once

#include <span>
#include <string>

#include "show/output.h"
#include "tasks/compare/task_report.h"

namespace fp8kv {

// The origin of a task's figures.
struct TaskRunFacts {
  std::string model;
  std::string fingerprint;
  std::string device;
};

// The figures of every cache in one task.
Table task_table(const TaskReport& report);
// The recovery of one cache, and the decision of its test if it has one.
std::string task_verdict(const TaskReport& report, const TaskCacheReport& cache);
// "choices hellaswag.jsonl (hellaswag), 0-shot, 200 of 1,000 items; compared by acc".
std::string task_words(const TaskReport& report);

// The verdict on each cache, one line each, and the table of each task.
std::string task_summary(std::span<const TaskReport> reports);

std::string tasks_json(const TaskRunFacts& facts, std::span<const TaskReport> reports);

// Says why a cache was not accepted: "choices: fp8_e4m3 unit is refused: recovery is below 99%,
// after 340 of 1,000 items, confidence 95%". Returns "" for an accepted cache and for one without a
// test.
std::string refusal_of(const TaskReport& report, const TaskCacheReport& cache);

}  // namespace fp8kv
