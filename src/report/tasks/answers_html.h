// Single answers to look at: texts that part from the baseline's, and choices that flipped.
#pragma once

#include <string>

#include "tasks/compare/task_report.h"

namespace fp8kv {

// Shows each cache's text beside the baseline's for a few items that only one of the two got right,
// losses first. Marks the place where the texts part. Markup; "" without such items, or for a task
// without texts.
std::string parted_texts(const TaskReport& report);

// Shows the answer of every cache to some items that a cache or the baseline alone got right; those
// that flipped with the most caches first. Markup; "" without such items, or for a task with texts.
std::string flipped_choices(const TaskReport& report);

}  // namespace fp8kv
