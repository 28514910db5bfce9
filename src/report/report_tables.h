// The numbers of an evaluation as HTML tables.
#pragma once

#include <string>

#include "eval/eval_report.h"

namespace fp8kv {

// One row for each cache.
std::string summary_table(const EvalReport& report);

// One row for each candidate, layer and tensor. Sortable.
std::string layer_table(const EvalReport& report);

// What was measured, on what, with what.
std::string provenance_list(const EvalReport& report);

}  // namespace fp8kv
