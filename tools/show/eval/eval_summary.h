// An evaluation in about twenty lines for any model: figures of the caches, the verdict, and the
// commands that follow from it.
#pragma once

#include <string>

#include "eval/eval_report.h"
#include "show/output.h"

namespace fp8kv {

std::string eval_summary(const EvalReport& report);

// The figures of every cache.
Table eval_table(const EvalReport& report);

}  // namespace fp8kv
