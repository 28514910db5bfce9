#include "eval/with_evidence.h"

#include "policy/make_scales.h"

namespace fp8kv {

KvScales with_evidence(const EvalReport& report, const CandidateReport& candidate) {
  KvScales scales;
  add_magnitudes(report.magnitudes, scales.provenance);
  add_run(report.config,
          {.source = "fp8kv eval",
           .tool_version = report.tool_version,
           .model_fingerprint = report.fingerprint,
           .parts = {AmaxAfter(), AmaxAfter(), report.half},
           .documents = report.documents,
           .windows = report.windows,
           .tokens = report.tokens,
           .data = report.data},
          scales);
  scales.skipped = candidate.skipped;
  scales.format = scales_for(candidate.dtype).value_or(candidate.dtype.k);
  if (!candidate.scales) {
    for (const LayerMagnitudes& layer : report.magnitudes) {
      scales.layers.push_back(layer.has_cache() ? LayerScales{{1}, {1}} : LayerScales{});
    }
    return scales;
  }
  scales.layers = candidate.scales->layers;
  scales.provenance.policy = candidate.scales->provenance.policy;
  scales.provenance.headroom = candidate.scales->provenance.headroom;
  return scales;
}

}  // namespace fp8kv
