// The plots of an evaluation, as markup. Each is "" where the report has nothing to draw.
#pragma once

#include <string>

#include "eval/eval_report.h"
#include "report/range_chart.h"

namespace fp8kv {

// Largest and median magnitude of each layer, between the format's limits.
std::string range_figure(const EvalReport& report, CacheTensor tensor);

// Largest magnitude of each head of each layer.
std::string head_figure(const EvalReport& report, CacheTensor tensor);

// Relative error of each layer, of every candidate.
std::string attention_error_figure(const EvalReport& report);
std::string tensor_error_figure(const EvalReport& report, CacheTensor tensor);

// By tokens in the cache; nothing where all predictions are about as deep.
std::string perplexity_figure(const EvalReport& report);
std::string divergence_figure(const EvalReport& report);

// Bytes of a token in the cache of each dtype.
std::string capacity_figure(const EvalReport& report);

}  // namespace fp8kv
