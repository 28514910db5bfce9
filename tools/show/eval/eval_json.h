// An evaluation as JSON, schema "fp8kv.eval/1": every number of the report, figures that are no
// number (a perplexity beyond all bounds) as null.
#pragma once

#include <string>
#include <vector>

#include "eval/eval_report.h"
#include "eval/gates.h"

namespace fp8kv {

std::string eval_json(const EvalReport& report, const std::vector<GateResult>& gates);

}  // namespace fp8kv
