// The numbers of an evaluation as HTML tables.
#pragma once

#include <string>

#include "eval/eval_report.h"
#include "report/verdict.h"

namespace fp8kv {

// The CSS class for a verdict: "good", "unsure" or "bad".
const char* loss_class(Loss loss);

// One row for each cache, with its verdict and its colour in the charts.
std::string summary_table(const EvalReport& report);

// One row for each candidate, layer and tensor. Sortable.
std::string layer_table(const EvalReport& report);

// Lists the measured caches, the text, the model and the device.
std::string provenance_list(const EvalReport& report);

}  // namespace fp8kv
