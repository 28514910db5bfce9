// An evaluation as JSON, schema "fp8kv.eval/1", with every number of the report. Figures that are
// not finite, such as an infinite perplexity, are null.
#pragma once

#include <string>
#include <vector>

#include "eval/eval_report.h"
#include "eval/gates.h"

namespace fp8kv {

std::string eval_json(const EvalReport& report, const std::vector<GateResult>& gates);

}  // namespace fp8kv
