// Turns a choice into a candidate of an evaluation.
#pragma once

#include <cstdint>
#include <vector>

#include "eval/eval_report.h"
#include "fit/fit_report.h"

namespace fp8kv {

// `left`: layers in the model's own dtype, ascending.
CandidateReport fit_candidate(const FitFormat& format, std::vector<int64_t> left);

}  // namespace fp8kv
