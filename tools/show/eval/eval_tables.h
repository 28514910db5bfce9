// Tables below the summary with every figure of an evaluation: by depth, by layer, and the
// certificate.
#pragma once

#include <string>

#include "eval/eval_report.h"

namespace fp8kv {

std::string eval_tables(const EvalReport& report);

}  // namespace fp8kv
