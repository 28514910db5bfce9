#include "calib/workspace.h"

#include "core/histogram.h"

namespace fp8kv {

Workspace::Workspace(Backend& backend, const ModelConfig& config, const WindowPlan& plan)
    : forward(backend, config, plan.most_rows, plan.longest_window),
      rows(backend, config, plan, 1),
      magnitudes(backend.allocate(DType::u64, Shape{3, config.n_kv_heads(), kMagnitudeWords})) {
  if (!config.experts) return;
  reached = backend.allocate(DType::u64, Shape{config.experts->count});
  forward.count_experts(reached.view());
}

}  // namespace fp8kv
