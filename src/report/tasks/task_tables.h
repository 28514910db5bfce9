// The scores of every cache on a task, and what was asked, as markup.
#pragma once

#include <span>
#include <string>

#include "report/tasks/standings.h"

namespace fp8kv {

// `comparisons` are all of the page; those of other tasks are left out.
std::string task_table(const TaskReport& report, std::span<const CacheComparison> comparisons);

// Explains the column "difference" in a paragraph.
std::string standing_note(std::span<const CacheComparison> comparisons);

}  // namespace fp8kv
