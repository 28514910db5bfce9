// Turns the scales of an evaluated cache into scales with evidence, for certify() to judge.
#pragma once

#include "core/scales/scales.h"
#include "eval/eval_report.h"

namespace fp8kv {

// The scales of a candidate in its own format, or 1 everywhere if it has none, with their
// provenance. The magnitudes of Q, K and V in the evaluated text become their evidence. REQUIRES an
// evaluated report and an FP8 candidate.
KvScales with_evidence(const EvalReport& report, const CandidateReport& candidate);

}  // namespace fp8kv
