// The plots of an evaluation, as markup. Each is "" if the report has nothing to draw.
#pragma once

#include <string>

#include "eval/eval_report.h"
#include "report/pages/range_chart.h"

namespace fp8kv {

// The largest and median magnitude of each layer, between the format's limits.
std::string range_figures(const EvalReport& report);

// The largest magnitude of each head of each layer.
std::string head_figure(const EvalReport& report, CacheTensor tensor);

// The relative error of each layer, for every candidate.
std::string attention_error_figure(const EvalReport& report);
std::string tensor_error_figures(const EvalReport& report);

// Plotted by tokens in the cache; "" if all predictions have about the same depth.
std::string perplexity_figure(const EvalReport& report);
std::string divergence_figure(const EvalReport& report);

// Bytes per token in the cache of each dtype.
std::string capacity_figure(const EvalReport& report);

}  // namespace fp8kv
