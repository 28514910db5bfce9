// An evaluation as tables for the terminal.
#pragma once

#include <string>

#include "eval/eval_report.h"

namespace fp8kv {

std::string eval_tables(const EvalReport& report);

}  // namespace fp8kv
