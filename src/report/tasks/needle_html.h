// The needles that each cache found, as coloured grids: depth by length.
#pragma once

#include <string>

#include "tasks/compare/task_report.h"

namespace fp8kv {

// Markup; "" for a task without needles.
std::string needle_pictures(const TaskReport& report);

}  // namespace fp8kv
