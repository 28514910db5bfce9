// The result of a task: which cache answered which items right.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "generate/generate.h"
#include "tasks/paired.h"
#include "tasks/recovery_test.h"

namespace fp8kv {

// A text that a cache wrote.
struct GeneratedText {
  std::string text;          // up to the stop string
  std::vector<int32_t> ids;  // all that were generated
  FinishReason finish = FinishReason::stop;
};

// One answer of one cache.
struct TaskAnswer {
  std::vector<uint8_t> right;              // by score: 1 where it is
  std::vector<std::string> answers;        // by score: what counted
  std::optional<GeneratedText> generated;  // of tasks that generate
};

// An item that was answered.
struct TaskItem {
  std::string where;   // "'mmlu.jsonl':3"
  std::string answer;  // the right one, or the pattern that decides
};

struct TaskCacheReport {
  std::string name;
  std::vector<TaskAnswer> answers;   // the first items; fewer where the test was decided before
  std::vector<PairedCounts> counts;  // by score, against the baseline
  std::optional<RecoveryTest> test;  // of the main score, where one was asked for
};

struct TaskReport {
  std::string task;  // "choices"
  std::string file;
  std::string form;        // "mmlu"
  bool generates = false;  // answers have texts
  uint64_t few_shot = 0;
  uint64_t there = 0;               // items that could be asked
  std::vector<std::string> scores;  // "acc", "acc_norm"
  size_t main_score = 0;
  std::string acceptance;       // as given; "": none
  std::vector<TaskItem> items;  // that were answered, in that order
  TaskCacheReport baseline;     // its counts are of itself
  std::vector<TaskCacheReport> caches;

  bool accepts() const { return !acceptance.empty(); }
};

}  // namespace fp8kv
