// An evaluation as one HTML page to view, print and keep. It loads nothing and needs no script.
// Equal reports give equal bytes.
#pragma once

#include <string>

#include "eval/eval_report.h"

namespace fp8kv {

// Leaves out parts that the report does not have. Escapes every name, since names may be hostile.
std::string html_report(const EvalReport& report);

}  // namespace fp8kv
