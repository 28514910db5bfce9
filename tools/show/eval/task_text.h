// Results of tasks, for people and for machines.
#pragma once

#include <span>
#include <string>

#include "tasks/task_report.h"

namespace fp8kv {

// The origin of a task's figures.
struct TaskRunFacts {
  std::string model;
  std::string fingerprint;
  std::string device;
};

// A line that answers, for each cache, and the table of each task.
std::string task_summary(std::span<const TaskReport> reports);

std::string tasks_json(const TaskRunFacts& facts, std::span<const TaskReport> reports);

// "fp8_e4m3 unit: recovery 91.2% after 340 items, below 'recovery >= 99%'": why a cache was not
// accepted; "" where it was, and without a test.
std::string refusal_of(const TaskReport& report, const TaskCacheReport& cache);

}  // namespace fp8kv
