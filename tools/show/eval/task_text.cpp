#include "show/eval/task_text.h"

#include <cmath>
#include <optional>

#include "base/text.h"
#include "json/json.h"
#include "show/eval/figure_text.h"
#include "show/eval/needle_text.h"
#include "tasks/compare/text_difference.h"

namespace fp8kv {
namespace {

const PairedCounts& main_counts(const TaskReport& report, const TaskCacheReport& cache) {
  return cache.counts[report.main_score];
}

std::string percent_of(double share, int decimals = 1) {
  return std::isfinite(share) ? fixed(share * 100, decimals) + "%" : "no bound";
}

double share_of(uint64_t right, uint64_t items) {
  return items == 0 ? 0 : static_cast<double>(right) / static_cast<double>(items);
}

std::string accuracy(const PairedCounts& counts) {
  return cat(fixed(share_of(counts.right(), counts.items()), 4), " ± ",
             fixed(share_error(counts.right(), counts.items()), 4));
}

std::string interval(const Recovery& recovery) {
  return cat(percent_of(recovery.low), " to ", percent_of(recovery.high));
}

std::string bound_text(double bound) {
  return cat("recovery >= ", significant(bound * 100, 6), "%");
}

std::string decision_words(const TaskReport& report, const TaskCacheReport& cache) {
  const RecoveryTest& test = *cache.test;
  const std::string bound = bound_text(test.bound());
  const std::string of = cat(" of ", grouped(report.there), " items");
  switch (test.decision()) {
    case Decision::accepted:
      return cat("accepted: ", bound, ", after ", grouped(test.items()), of, ", confidence 95%");
    case Decision::refused:
      return cat("refused: recovery is below ", significant(test.bound() * 100, 6), "%, after ",
                 grouped(test.items()), of, ", confidence 95%");
    case Decision::open:
      break;
  }
  const uint64_t needed = test.items_to_decide(main_counts(report, cache));
  return cat("not decided: ", bound, ", after all ", grouped(test.items()), " items; ",
             needed == 0             ? "no number like these would decide it"
             : needed > test.items() ? cat("about ", grouped(needed), " like these would decide it")
                                     : "a few more may decide it");
}

// Adds three cells: identical texts, like "17 of 20", the median place where the others differ,
// like "token 45", and the divergence a token up to these places.
void add_difference(const TaskReport& report, const TaskCacheReport& cache,
                    std::vector<std::string>& row) {
  if (&cache == &report.baseline) {
    row.insert(row.end(), {"-", "-", "-"});
    return;
  }
  const TextDifference texts = difference_of(cache.answers, report.baseline.answers);
  row.push_back(cat(grouped(texts.identical), " of ", grouped(texts.compared)));
  row.push_back(texts.median_place ? cat("token ", grouped(*texts.median_place)) : "-");
  row.push_back(cat(significant(texts.kld, 3),
                    texts.kld_error ? " ± " + significant(*texts.kld_error, 2) : ""));
}

void number_or_null(JsonWriter& json, const char* name, std::optional<double> value) {
  json.key(name);
  value&& std::isfinite(*value) ? json.value(*value) : json.null();
}

void test_json(JsonWriter& json, const TaskReport& report, const TaskCacheReport& cache) {
  const RecoveryTest& test = *cache.test;
  const char* names[] = {"not decided", "accepted", "refused"};
  json.key("test").begin_object().member("bound", test.bound());
  json.member("confidence", RecoveryTest::kConfidence);
  json.member("decision", names[static_cast<size_t>(test.decision())]);
  json.member("items", test.items());
  if (test.decision() == Decision::open) {
    json.member("items_to_decide", test.items_to_decide(main_counts(report, cache)));
  }
  json.end_object();
}

void texts_json(JsonWriter& json, const TaskReport& report, const TaskCacheReport& cache) {
  const TextDifference texts = difference_of(cache.answers, report.baseline.answers);
  json.key("texts").begin_object().member("compared", texts.compared);
  json.member("identical", texts.identical).key("median_place");
  texts.median_place ? json.value(*texts.median_place) : json.null();
  number_or_null(json, "kld", texts.kld);
  number_or_null(json, "kld_error", texts.kld_error);
  json.end_object();
}

void cache_json(JsonWriter& json, const TaskReport& report, const TaskCacheReport& cache) {
  const bool is_baseline = &cache == &report.baseline;
  json.begin_object().member("name", cache.name).member("items", uint64_t{cache.answers.size()});
  json.key("scores").begin_array();
  for (size_t i = 0; i < report.scores.size(); ++i) {
    const PairedCounts& counts = cache.counts[i];
    json.begin_object().member("name", report.scores[i]);
    json.member("value", share_of(counts.right(), counts.items()));
    json.member("error", share_error(counts.right(), counts.items()));
    if (!is_baseline) {
      json.member("wins", counts.wins).member("losses", counts.losses);
      json.member("ties", counts.ties()).member("p", mcnemar_p(counts.wins, counts.losses));
      if (counts.baseline_right() > 0) {
        const Recovery recovery = recovery_of(counts);
        json.member("recovery", recovery.value);
        number_or_null(json, "recovery_low", recovery.low);
        number_or_null(json, "recovery_high", recovery.high);
      }
    }
    json.end_object();
  }
  json.end_array();
  if (cache.test) test_json(json, report, cache);
  if (report.generates && !is_baseline) texts_json(json, report, cache);
  json.key("answers").begin_array();
  for (const TaskAnswer& each : cache.answers) {
    json.begin_object();
    for (size_t i = 0; i < report.scores.size(); ++i) {
      json.member(report.scores[i], each.answers[i]);
    }
    if (each.generated) {
      json.member("text", each.generated->text);
      json.member("tokens", uint64_t{each.generated->ids.size()});
      json.member("finish_reason", finish_reason_name(each.generated->finish));
      if (!is_baseline) {
        number_or_null(json, "kld", each.generated->divergence.kld);
        json.member("kld_tokens", each.generated->divergence.tokens);
      }
    }
    json.end_object();
  }
  json.end_array().end_object();
}

void task_json(JsonWriter& json, const TaskReport& report) {
  json.begin_object().member("task", report.task).member("file", report.file);
  json.member("form", report.form).member("few_shot", report.few_shot);
  json.member("items_there", report.there);
  json.member("main_score", report.scores[report.main_score]);
  json.key("items").begin_array();
  for (const TaskItem& item : report.items) {
    json.begin_object().member("where", item.where).member("answer", item.answer);
    if (item.place) {
      json.member("kind", needle_kind_name(item.place->kind)).member("length", item.place->length);
      json.member("depth", item.place->depth);
    }
    json.end_object();
  }
  json.end_array().key("baseline");
  cache_json(json, report, report.baseline);
  json.key("candidates").begin_array();
  for (const TaskCacheReport& cache : report.caches) cache_json(json, report, cache);
  json.end_array().end_object();
}

}  // namespace

Table task_table(const TaskReport& report) {
  std::vector<std::string> header = {"cache", "items"};
  for (const std::string& score : report.scores) header.push_back(score);
  for (const char* name : {"wins", "losses", "ties", "p", "recovery"}) header.emplace_back(name);
  if (report.generates) header.insert(header.end(), {"same text", "differs at", "KLD until there"});
  Table table(header);
  const auto add = [&](const TaskCacheReport& cache) {
    const bool is_baseline = &cache == &report.baseline;
    std::vector<std::string> row = {cat(cache.name, is_baseline ? " (baseline)" : ""),
                                    grouped(cache.answers.size())};
    for (const PairedCounts& counts : cache.counts) row.push_back(accuracy(counts));
    const PairedCounts& counts = main_counts(report, cache);
    if (is_baseline) {
      row.insert(row.end(), {"-", "-", "-", "-", "-"});
    } else {
      row.insert(row.end(), {grouped(counts.wins), grouped(counts.losses), grouped(counts.ties()),
                             significant(mcnemar_p(counts.wins, counts.losses), 2),
                             counts.baseline_right() == 0 ? "-" : interval(recovery_of(counts))});
    }
    if (report.generates) add_difference(report, cache, row);
    table.add(std::move(row));
  };
  add(report.baseline);
  for (const TaskCacheReport& cache : report.caches) add(cache);
  return table;
}

std::string task_verdict(const TaskReport& report, const TaskCacheReport& cache) {
  const PairedCounts& counts = main_counts(report, cache);
  std::string text = cat(cache.name, " ");
  if (counts.baseline_right() == 0) {
    text += cat("cannot be compared: ", report.baseline.name, " has no item right");
  } else {
    const Recovery recovery = recovery_of(counts);
    text += cat("keeps ", percent_of(recovery.value), " of the ", report.scores[report.main_score],
                " of ", report.baseline.name, " (95% interval ", interval(recovery), ")");
  }
  if (cache.test) text += "; " + decision_words(report, cache);
  return text;
}

std::string task_words(const TaskReport& report) {
  return cat(report.task, " ", report.file, " (", report.form, "), ", report.few_shot, "-shot, ",
             grouped(report.items.size()), " of ", count_of(report.there, "item"), "; compared by ",
             report.scores[report.main_score]);
}

std::string task_summary(std::span<const TaskReport> reports) {
  std::string text;
  for (const TaskReport& report : reports) {
    if (!text.empty()) text += "\n";
    text += noted("task", task_words(report));
    for (size_t i = 0; i < report.caches.size(); ++i) {
      text += noted(i == 0 ? "verdict" : "", task_verdict(report, report.caches[i]));
    }
    text += task_table(report).text() + needle_grids(report);
  }
  return text;
}

std::string tasks_json(const TaskRunFacts& facts, std::span<const TaskReport> reports) {
  JsonWriter json;
  json.begin_object().member("schema", "fp8kv.tasks/1").member("tool_version", FP8KV_VERSION);
  json.member("model", facts.model).member("fingerprint", facts.fingerprint);
  json.member("device", facts.device).key("tasks").begin_array();
  for (const TaskReport& report : reports) task_json(json, report);
  return json.end_array().end_object().text();
}

std::string refusal_of(const TaskReport& report, const TaskCacheReport& cache) {
  if (!cache.test || cache.test->decision() == Decision::accepted) return "";
  return cat(report.task, ": ", cache.name, " is ", decision_words(report, cache));
}

}  // namespace fp8kv
