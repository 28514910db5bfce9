// The recovery of every cache on every task, as intervals on one axis.
#pragma once

#include <span>
#include <string>

#include "report/tasks/standings.h"

namespace fp8kv {

// Markup; "" if no cache has a recovery.
std::string recovery_figure(std::span<const TaskReport> reports,
                            std::span<const CacheComparison> comparisons);

}  // namespace fp8kv
