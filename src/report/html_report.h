// An evaluation as one HTML page to look at, print and keep: it loads nothing, needs no script, and
// the same report gives the same bytes.
#pragma once

#include <string>

#include "eval/eval_report.h"

namespace fp8kv {

// Parts that the report lacks are left out. Every name in it may be hostile.
std::string html_report(const EvalReport& report);

}  // namespace fp8kv
