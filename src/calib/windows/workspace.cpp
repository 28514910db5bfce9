#include "calib/windows/workspace.h"

#include "core/numbers/histogram.h"

namespace fp8kv {

Workspace::Workspace(Backend& backend, const ModelConfig& config, const WindowPlan& plan,
                     int64_t n_layers)
    : forward(backend, config, plan.most_rows, plan.longest_window),
      rows(backend, config, plan, CacheMemory::in_turn, config.shares_caches(n_layers)),
      chosen(backend, config, {plan.most_rows, plan.total_rows, plan.longest_window}),
      magnitudes(backend.allocate(DType::u64, Shape{3, config.n_kv_heads(), kMagnitudeWords})) {
  if (!config.experts) return;
  reached = backend.allocate(DType::u64, Shape{config.experts->choices()});
  forward.count_experts(reached.view());
}

std::optional<TensorView> Workspace::magnitudes_of(const ModelConfig& config, int64_t index) const {
  if (!config.writes_cache(index)) return std::nullopt;
  return TensorView{magnitudes.view().data, DType::u64,
                    Shape{3, config.layer(index).n_kv_heads, kMagnitudeWords}};
}

}  // namespace fp8kv
