// Tables of the places at which needles were found, for people.
#pragma once

#include <string>

#include "tasks/compare/task_report.h"

namespace fp8kv {

// For each cache and kind a table of depth by length: items found of those that were asked. "" for
// a task without needles.
std::string needle_grids(const TaskReport& report);

}  // namespace fp8kv
