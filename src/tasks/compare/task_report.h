// The report of a task: which cache answered which items right.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "generate/generate.h"
#include "tasks/compare/paired.h"
#include "tasks/compare/recovery_test.h"
#include "tasks/items/needle.h"

namespace fp8kv {

// The divergence of a cache's predictions from the baseline's, up to the token where their texts
// part. See tasks/compare/text_divergence.h.
struct TextDivergence {
  double kld = 0;       // nats, summed over the tokens
  uint64_t tokens = 0;  // predictions compared, with the one that draws another token
};

// A text that a cache wrote.
struct GeneratedText {
  std::string text;          // up to the stop string
  std::vector<int32_t> ids;  // generated ids, with those of the stop string
  FinishReason finish = FinishReason::stop;
  TextDivergence divergence = {};  // from the baseline's text; without tokens for the baseline
};

// One answer of one cache.
struct TaskAnswer {
  std::vector<uint8_t> right;              // by score: 1 for a right answer
  std::vector<std::string> answers;        // by score: the answer that was graded
  std::optional<GeneratedText> generated;  // set by tasks that generate
};

// An item that the caches answered.
struct TaskItem {
  std::string where;                      // "'mmlu.jsonl':3"
  std::string answer;                     // the right answer, or the pattern that decides
  std::optional<NeedlePlace> place = {};  // set by the task needle
};

struct TaskCacheReport {
  std::string name;
  std::vector<TaskAnswer> answers;   // one per item; fewer if the test was decided early
  std::vector<PairedCounts> counts;  // by score, against the baseline
  std::optional<RecoveryTest> test;  // on the main score; only with an acceptance
};

struct TaskReport {
  std::string task;  // "choices"
  std::string file;
  std::string form;        // "mmlu"
  bool generates = false;  // whether answers have texts
  uint64_t few_shot = 0;
  uint64_t there = 0;               // number of items that could be asked
  std::vector<std::string> scores;  // "acc", "acc_norm"
  size_t main_score = 0;
  std::string acceptance;       // as the user wrote it; "": none
  std::vector<TaskItem> items;  // the items asked, in the order of the answers
  TaskCacheReport baseline;     // its counts compare it with itself
  std::vector<TaskCacheReport> caches;

  bool accepts() const { return !acceptance.empty(); }
};

}  // namespace fp8kv
