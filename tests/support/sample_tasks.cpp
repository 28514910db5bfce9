#include "support/sample_tasks.h"

#include "base/text.h"

namespace fp8kv::test {
namespace {

// Whether the baseline and the cache have the item right. A step that is coprime to the number of
// items spreads each kind over them.
std::pair<bool, bool> right_at(uint64_t item, const PairedCounts& counts) {
  constexpr uint64_t kStep = 617;
  const uint64_t i = item * kStep % counts.items();
  if (i < counts.both) return {true, true};
  if (i < counts.baseline_right()) return {true, false};
  return {false, i < counts.baseline_right() + counts.wins};
}

TaskAnswer answer_of(const SampleTask& shape, uint64_t item, bool right) {
  TaskAnswer answer;
  answer.right = {static_cast<uint8_t>(right)};
  answer.answers = {(right ? "the right one" : "another one") + shape.name};
  if (shape.generates) {
    const int32_t own = right ? 1 : 2;
    answer.generated = GeneratedText{cat("So the sum is", shape.name, "\nfirst ", item,
                                         right ? " 42" : " 43", shape.name, ".\nThe end"),
                                     {7, 8, own, own},
                                     right ? FinishReason::stop : FinishReason::length};
  }
  return answer;
}

}  // namespace

TaskReport sample_task(const SampleTask& shape) {
  TaskReport report;
  report.task = shape.task;
  report.file = "data/items.jsonl" + shape.name;
  report.form = "general";
  report.generates = shape.generates;
  report.scores = {"acc"};
  report.baseline.name = "bfloat16" + shape.name;
  report.baseline.counts.resize(1);
  if (shape.bound > 0) report.acceptance = cat("recovery >= ", shape.bound);
  for (const SampleCache& each : shape.caches) {
    report.caches.emplace_back().name = each.name + shape.name;
    report.caches.back().counts.resize(1);
    if (shape.bound > 0) report.caches.back().test.emplace(shape.bound);
  }
  report.there = shape.caches.empty() ? 4 : shape.caches[0].counts.items();
  for (uint64_t i = 0; i < report.there; ++i) {
    report.items.push_back(
        {.where = cat("'items.jsonl", shape.name, "':", i + 1), .answer = "right" + shape.name});
    const bool baseline_right = shape.caches.empty() || right_at(i, shape.caches[0].counts).first;
    report.baseline.answers.push_back(answer_of(shape, i, baseline_right));
    report.baseline.counts[0].add(baseline_right, baseline_right);
    for (size_t c = 0; c < report.caches.size(); ++c) {
      TaskCacheReport& cache = report.caches[c];
      if (cache.test && cache.test->decision() != Decision::open) continue;
      const bool right = right_at(i, shape.caches[c].counts).second;
      cache.answers.push_back(answer_of(shape, i, right));
      cache.counts[0].add(right, baseline_right);
      if (cache.test) cache.test->add(right, baseline_right);
    }
  }
  return report;
}

TaskReport sample_needles(int64_t depths, int64_t lengths, const std::vector<NeedleKind>& kinds) {
  NeedleOptions options{.lengths = {}, .depths = depths, .kinds = kinds, .samples = 4};
  for (int64_t i = 0; i < lengths; ++i) options.lengths.push_back(int64_t{512} << i);
  const std::vector<NeedlePlace> places = needle_places(options);
  TaskReport report =
      sample_task({.task = "needle",
                   .caches = {{{places.size(), 0, 0, 0}}, {{places.size(), 0, 0, 0}, "nvfp4 unit"}},
                   .generates = true,
                   .name = ""});
  report.scores = {"found"};
  TaskCacheReport& cache = report.caches[1];
  cache.counts[0] = {};
  for (size_t i = 0; i < places.size(); ++i) {
    report.items[i].place = places[i];
    report.items[i].where = needle_name("'book.txt'", places[i]);
    const auto misses = static_cast<uint64_t>(i / 4 % 5);  // 0 to 4 of a place's four samples
    const bool right = places[i].sample >= misses;
    cache.answers[i] = answer_of({.generates = true, .name = ""}, i, right);
    cache.counts[0].add(right, true);
  }
  return report;
}

TasksPageFacts sample_task_facts(const std::string& name) {
  return {.model = "models/sample" + name,
          .fingerprint = "kv-proj-v1:1234" + name,
          .device = "cpu: AVX2, 2 threads" + name,
          .scales = "scales.json" + name,
          .files = {{"items.jsonl" + name, 4096, "abcd" + name}},
          .scale_text = {{"text.txt" + name, 1024, "ef01" + name}},
          .date = "2026-11-22",
          .tool_version = "1.2.3" + name};
}

std::vector<std::pair<std::string, std::string>> sample_task_pages(const std::string& hostile) {
  std::vector<std::pair<std::string, std::string>> pages;
  const auto add = [&](const char* page, const std::vector<TaskReport>& reports,
                       const std::string& name = "") {
    pages.emplace_back(page, tasks_html(reports, sample_task_facts(name)));
  };
  const std::vector<SampleCache> two = {{{50, 1, 2, 7}}, {{30, 3, 22, 5}, "nvfp4 amax"}};
  add("tasks-plain", {sample_task({.caches = two}),
                      sample_task({.task = "gsm8k", .caches = two, .generates = true}),
                      sample_needles(3, 3, {NeedleKind::single})});
  add("tasks-accepting", {sample_task({.caches = {{{990, 5, 5, 0}},
                                                  {{600, 5, 395, 0}, "nvfp4 unit"},
                                                  {{975, 5, 20, 0}, "fp8_e5m2"}},
                                       .bound = 0.98,
                                       .name = ""})});
  std::vector<SampleCache> many;
  for (uint64_t i = 0; i < 12; ++i) {
    many.push_back({{80 - i, i, i, 20 - i}, cat("fp8_e4m3 amax*1.", i, " without layers 0,1")});
  }
  add("tasks-many",
      {sample_task({.caches = many}),
       sample_task({.task = "generate", .caches = many, .generates = true}),
       sample_needles(11, 12, {NeedleKind::single, NeedleKind::keys, NeedleKind::values})});
  add("tasks-unsolved", {sample_task({.caches = {{{0, 0, 0, 9}}, {{0, 2, 0, 7}, "nvfp4 unit"}}})});
  add("tasks-bare", {sample_task({})});
  for (const std::string& name : {std::string(), hostile}) {
    add(name.empty() ? "tasks-harmless" : "tasks-hostile",
        {sample_task({.caches = two, .name = name}),
         sample_task({.task = "generate", .caches = two, .generates = true, .name = name})},
        name);
  }
  return pages;
}

}  // namespace fp8kv::test
