// Items go to every cache block by block, until the tests decide.
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"
#include "base/log.h"
#include "support/expect_error.h"
#include "tasks/compare/paired_run.h"

using namespace fp8kv;

namespace {

// A report for a baseline that is always right, and two caches.
TaskReport paired_report() {
  TaskReport report;
  report.task = "choices";
  report.scores = {"acc"};
  report.baseline.name = "float16";
  report.caches.resize(2);
  report.caches[0].name = "good";
  report.caches[1].name = "bad";
  return report;
}

}  // namespace

TEST_CASE("paired run: a decided cache is asked no more, and the other is asked each item once") {
  TaskReport report = paired_report();
  Log log(Verbosity::quiet);
  std::vector<std::vector<size_t>> asked(3);
  const AnswerItems answer = [&](size_t cache, std::span<const size_t> items, Progress&) {
    asked[cache].insert(asked[cache].end(), items.begin(), items.end());
    return std::vector<TaskAnswer>(items.size(), TaskAnswer{{cache != 2}, {""}, {}});
  };
  const std::vector<size_t> order =
      run_paired({.items = 500, .block = 10, .accept = parse_acceptance("recovery >= 99%")}, answer,
                 report, log);
  CHECK(report.caches[1].test->decision() == Decision::refused);
  CHECK(report.caches[1].answers.size() == asked[2].size());
  CHECK(asked[2].size() < 50);
  CHECK(asked[1] == order);
  CHECK(asked[0] == order);
  std::vector<size_t> sorted = order;
  std::ranges::sort(sorted);
  CHECK(sorted != order);  // random with a test, so that the first items stand for all
  CHECK(std::ranges::adjacent_find(sorted) == sorted.end());
}

TEST_CASE("paired run: an error names the task and the cache that caused it") {
  TaskReport report = paired_report();
  Log log(Verbosity::quiet);
  const AnswerItems answer = [](size_t cache, std::span<const size_t> items, Progress&) {
    if (cache == 2) fail("a logit is NaN, or none is finite");
    return std::vector<TaskAnswer>(items.size(), TaskAnswer{{1}, {""}, {}});
  };
  CHECK(test::error_of([&] {
          run_paired({.items = 3, .block = 2, .accept = {}}, answer, report, log);
        }) == "choices: bad: a logit is NaN, or none is finite");
}
