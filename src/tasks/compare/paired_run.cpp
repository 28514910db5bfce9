#include "tasks/compare/paired_run.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/rng.h"

namespace fp8kv {
namespace {

constexpr uint64_t kOrderSeed = 1;

// The order of the items. With `accept` it is a random permutation, by Fisher and Yates.
std::vector<size_t> item_order(const PairedRun& run) {
  std::vector<size_t> order(run.items);
  std::iota(order.begin(), order.end(), size_t{0});
  if (!run.accept) return order;
  Rng rng(kOrderSeed);
  for (size_t left = order.size(); left > 1; --left) {
    std::swap(order[left - 1], order[static_cast<size_t>(rng.next() % left)]);
  }
  return order;
}

void add_answers(const TaskReport& report, std::vector<TaskAnswer> answers,
                 TaskCacheReport& cache) {
  const TaskCacheReport& baseline = report.baseline;
  for (TaskAnswer& each : answers) {
    const size_t item = cache.answers.size();
    const bool is_baseline = &cache == &baseline;
    for (size_t score = 0; score < report.scores.size(); ++score) {
      const bool right = each.right[score] != 0;
      const bool baseline_right = is_baseline ? right : baseline.answers[item].right[score] != 0;
      cache.counts[score].add(right, baseline_right);
      if (cache.test && score == report.main_score) cache.test->add(right, baseline_right);
    }
    cache.answers.push_back(std::move(each));
  }
}

bool is_open(const TaskCacheReport& cache) {
  return !cache.test || cache.test->decision() == Decision::open;
}

}  // namespace

std::vector<size_t> run_paired(const PairedRun& run, const AnswerItems& answer, TaskReport& report,
                               Log& log) {
  report.there = run.items;
  report.baseline.counts.resize(report.scores.size());
  for (TaskCacheReport& cache : report.caches) {
    cache.counts.resize(report.scores.size());
    if (run.accept) cache.test.emplace(run.accept->bound);
  }
  if (run.accept) report.acceptance = run.accept->text;
  std::vector<size_t> order = item_order(run);
  Progress progress(log, report.task, uint64_t{order.size()} * (report.caches.size() + 1));
  size_t done = 0;
  while (done < order.size() && std::any_of(report.caches.begin(), report.caches.end(), is_open)) {
    const size_t n = std::min(order.size() - done, static_cast<size_t>(run.block));
    const std::span<const size_t> block = std::span(order).subspan(done, n);
    const auto ask = [&](size_t number, TaskCacheReport& cache) {
      const auto asked = [&] { return answer(number, block, progress); };
      add_answers(report, with_context(cat(report.task, ": ", cache.name), asked), cache);
    };
    ask(0, report.baseline);
    for (size_t i = 0; i < report.caches.size(); ++i) {
      TaskCacheReport& cache = report.caches[i];
      is_open(cache) ? ask(i + 1, cache) : progress.advance(n);
    }
    done += n;
  }
  order.resize(done);
  return order;
}

}  // namespace fp8kv
