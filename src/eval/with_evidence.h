// The scales of an evaluated cache as scales that stand for themselves: what certify() judges.
#pragma once

#include "core/scales.h"
#include "eval/eval_report.h"

namespace fp8kv {

// The scales of a candidate (1 everywhere where it has none) in its own format, with how they were
// made, and what Q, K and V reached in the evaluated text as their evidence. REQUIRES an evaluated
// report and an FP8 candidate.
KvScales with_evidence(const EvalReport& report, const CandidateReport& candidate);

}  // namespace fp8kv
