#include "report/tasks/task_verdict.h"

#include <algorithm>

#include "base/text.h"
#include "draw/numbers.h"
#include "tasks/compare/text_difference.h"

namespace fp8kv {
namespace {

// A headline with more names than this has counts in their place.
constexpr size_t kMostNamed = 4;
// With more comparisons than this, only those with a finding have a line. The table has all.
constexpr size_t kMostLines = 8;

// Comparisons whose sentence in the headline is the same.
using Subset = std::vector<const CacheComparison*>;

std::string name_of(const CacheComparison& each, bool with_task) {
  return with_task ? cat(each.cache->name, " on ", each.task->task) : each.cache->name;
}

std::string bound_of(const CacheComparison& each) {
  return short_percent(each.cache->test->bound(), 6);
}

// REQUIRES a baseline with an item right.
std::string recovery_clause(const CacheComparison& each) {
  const Recovery recovery = recovery_of(each.counts());
  return cat("recovery is ", recovery_percent(recovery.value), " (95 % interval ",
             recovery_interval(recovery), ")");
}

std::string needed_clause(const CacheComparison& each) {
  const RecoveryTest& test = *each.cache->test;
  const uint64_t needed = test.items_to_decide(each.counts());
  if (needed == 0) return "no number of items like these would decide it";
  if (needed > test.items()) {
    return cat("about ", grouped(needed), " items like these would decide it");
  }
  return "a few more items may decide it";
}

// "is accepted: recovery is at least 98 %, after 340 of 1,000 items".
std::string decision_clause(const CacheComparison& each) {
  const RecoveryTest& test = *each.cache->test;
  switch (test.decision()) {
    case Decision::accepted:
      return cat("is accepted: recovery is at least ", bound_of(each), ", after ",
                 grouped(test.items()), " of ", count_of(each.task->there, "item"));
    case Decision::refused:
      return cat("is refused: recovery is below ", bound_of(each), ", after ",
                 grouped(test.items()), " of ", count_of(each.task->there, "item"));
    case Decision::open:
      break;
  }
  return cat("is not decided at ", bound_of(each), " after all ", count_of(test.items(), "item"),
             "; ", needed_clause(each));
}

// "nvfp4 unit has fewer items right than bfloat16, beyond chance (p = 0.0039)".
std::string difference_clause(const CacheComparison& each, const std::string& name) {
  const std::string baseline = each.task->baseline.name;
  const std::string p = cat(" (p = ", p_text(each.p), ")");
  if (each.standing == Standing::worse || each.standing == Standing::better) {
    return cat(name, " has ", each.standing == Standing::worse ? "fewer" : "more",
               " items right than ", baseline, ", beyond chance", p);
  }
  return cat("These items do not tell ", name, " from ", baseline, p);
}

std::string comparison_line(const CacheComparison& each, bool with_task) {
  const std::string name = name_of(each, with_task);
  if (each.cache->test) {
    const std::string found =
        each.has_recovery() ? cat(" On these items ", recovery_clause(each), ".") : "";
    return cat(name, " ", decision_clause(each), ".", found);
  }
  if (!each.has_recovery()) {
    return cat(name, " cannot be compared: ", each.task->baseline.name, " has no item right.");
  }
  return cat(difference_clause(each, name), ": ", recovery_clause(each), ".");
}

bool is_finding(const CacheComparison& each) {
  if (each.cache->test) return each.cache->test->decision() == Decision::refused;
  return each.standing == Standing::worse || each.standing == Standing::better;
}

std::string names_of(const Subset& subset, bool with_task) {
  if (subset.size() > kMostNamed) return cat(grouped(subset.size()), " comparisons");
  std::vector<std::string> names;
  for (const CacheComparison* each : subset) names.push_back(name_of(*each, with_task));
  return join(names);
}

// "fp8_e4m3 unit after 340 items and nvfp4 unit after 64 items".
std::string decided_names(const Subset& subset, bool with_task) {
  if (subset.size() > kMostNamed) return names_of(subset, with_task);
  std::vector<std::string> names;
  for (const CacheComparison* each : subset) {
    names.push_back(
        cat(name_of(*each, with_task), " after ", count_of(each->cache->test->items(), "item")));
  }
  return join(names);
}

template <typename Predicate>
Subset those(std::span<const CacheComparison> comparisons, const Predicate& wanted) {
  Subset found;
  for (const CacheComparison& each : comparisons) {
    if (wanted(each)) found.push_back(&each);
  }
  return found;
}

// "Recovery of at least 98 %, with 95 % confidence: accepted a after 340 items; refused b ..."
TaskVerdict decided(std::span<const CacheComparison> comparisons, bool with_task) {
  const auto with = [&](Decision decision) {
    return those(comparisons, [&](const CacheComparison& each) {
      return each.cache->test && each.cache->test->decision() == decision;
    });
  };
  const Subset refused = with(Decision::refused), open = with(Decision::open);
  TaskVerdict verdict{refused.empty() ? open.empty() ? "good" : "unsure" : "bad", {}};
  if (comparisons.size() == 1) return verdict;
  std::vector<std::string> parts;
  const auto add = [&](const char* word, const Subset& subset) {
    if (!subset.empty()) parts.push_back(cat(word, " ", decided_names(subset, with_task)));
  };
  add("accepted", with(Decision::accepted));
  add("refused", refused);
  add("not decided", open);
  std::string text =
      cat("Recovery of at least ", bound_of(comparisons[0]), ", with 95 % confidence: ");
  for (size_t i = 0; i < parts.size(); ++i) text += (i == 0 ? "" : "; ") + parts[i];
  verdict.lines.push_back(text + ".");
  return verdict;
}

// The widest bounds that the comparisons leave open.
std::string widest_clause(const Subset& subset, bool with_task) {
  const CacheComparison* least = nullptr;
  double low = 0, high = 0;
  for (const CacheComparison* each : subset) {
    const Recovery recovery = recovery_of(each->counts());
    if (least == nullptr || recovery.low < low) {
      least = each;
      low = recovery.low;
    }
    high = std::max(high, recovery.high);
  }
  return cat("the 95 % intervals of recovery reach from ", recovery_percent(low), " (",
             name_of(*least, with_task), ") to ", recovery_percent(high));
}

// The comparisons that the items leave open, among `all`.
std::string open_clause(const Subset& open, size_t all, bool with_task) {
  const std::string& baseline = open[0]->task->baseline.name;
  if (open.size() == all) return cat("These items tell no cache from ", baseline);
  if (!with_task && open.size() <= kMostNamed) {
    return cat("These items do not tell ", names_of(open, with_task), " from ", baseline);
  }
  return open.size() == 1
             ? "These items leave another comparison open"
             : cat("These items leave ", grouped(open.size()), " other comparisons open");
}

TaskVerdict compared(std::span<const CacheComparison> comparisons, bool with_task) {
  const auto with = [&](Standing standing) {
    return those(comparisons, [&](const CacheComparison& each) {
      return each.has_recovery() && each.standing == standing;
    });
  };
  const Subset worse = with(Standing::worse), better = with(Standing::better);
  const Subset open = with(Standing::not_shown);
  const std::string baseline = comparisons[0].task->baseline.name;
  TaskVerdict verdict{worse.empty() ? "unsure" : "bad", {}};
  if (comparisons.size() == 1) return verdict;
  std::string text;
  const auto add = [&](const char* what, const Subset& subset) {
    if (subset.empty()) return;
    const std::string who =
        subset.size() > kMostNamed
            ? cat("In ", names_of(subset, with_task), " a cache has ")
            : cat(names_of(subset, with_task), subset.size() == 1 ? " has " : " have ");
    text +=
        cat(text.empty() ? "" : " ", who, what, " items right than ", baseline, ", beyond chance.");
  };
  add("fewer", worse);
  add("more", better);
  if (!open.empty()) {
    text += cat(text.empty() ? "" : " ", open_clause(open, comparisons.size(), with_task), ": ",
                widest_clause(open, with_task), ".");
  }
  if (text.empty()) text = cat("Nothing can be compared: ", baseline, " has no item right.");
  verdict.lines.push_back(text);
  return verdict;
}

// "Same texts as bfloat16 on needle: fp8_e4m3 unit 12 of 12, nvfp4 unit 2 of 12."
std::string same_texts_line(const TaskReport& report) {
  std::vector<std::string> parts;
  for (const TaskCacheReport& cache : report.caches) {
    const TextDifference texts = difference_of(cache.answers, report.baseline.answers);
    parts.push_back(
        cat(cache.name, " ", grouped(texts.identical), " of ", grouped(texts.compared)));
  }
  return cat("Same texts as ", report.baseline.name, " on ", report.task, ": ", join(parts), ".");
}

std::string measured_line(std::span<const TaskReport> reports) {
  std::vector<std::string> parts;
  for (const TaskReport& report : reports) {
    parts.push_back(cat(count_of(report.items.size(), "item"), " of ", report.task));
  }
  return cat("Measured on ", join(parts), ".");
}

}  // namespace

TaskVerdict task_verdict(std::span<const TaskReport> reports,
                         std::span<const CacheComparison> comparisons) {
  if (comparisons.empty()) return {"unsure", {"No cache was compared."}};
  const bool with_task = reports.size() > 1;
  TaskVerdict verdict = comparisons[0].cache->test ? decided(comparisons, with_task)
                                                   : compared(comparisons, with_task);
  for (const CacheComparison& each : comparisons) {
    if (comparisons.size() <= kMostLines || is_finding(each)) {
      verdict.lines.push_back(comparison_line(each, with_task));
    }
  }
  for (const TaskReport& report : reports) {
    if (report.generates && !report.caches.empty() && report.caches.size() <= kMostNamed) {
      verdict.lines.push_back(same_texts_line(report));
    }
  }
  verdict.lines.push_back(measured_line(reports));
  return verdict;
}

}  // namespace fp8kv
