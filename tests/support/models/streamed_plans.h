// Plans of memory for a calibration of the streamed model.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/error.h"
#include "calib/windows/memory_plan.h"
#include "support/models/streamed_model.h"

namespace fp8kv::test {

// All layers, the last one up to its keys and values.
inline std::vector<StreamedLayer> all_layers(const ModelConfig& config) {
  std::vector<StreamedLayer> layers;
  for (int64_t i = 0; i + 1 < config.n_layers(); ++i) layers.push_back({i, LayerPart::whole});
  layers.push_back({config.n_layers() - 1, LayerPart::up_to_kv});
  return layers;
}

// The plan within a bound of device memory.
inline MemoryPlan plan_for(const StreamedModel& model, Backend& backend,
                           std::optional<uint64_t> bound = {}) {
  const WindowPlan windows = plan_windows(StreamedModel::windows(), {}, StreamedModel::kRows);
  return plan_memory({model.checkpoint, model.config, backend}, windows, all_layers(model.config),
                     {bound});
}

// No bound, and one bound for each plan that exists.
inline std::vector<std::optional<uint64_t>> bounds_for(const StreamedModel& model,
                                                       Backend& backend) {
  std::vector<std::optional<uint64_t>> bounds = {std::nullopt};
  for (uint64_t bytes = plan_for(model, backend).bytes;;) {
    bounds.push_back(bytes);
    try {
      bytes = plan_for(model, backend, bytes - 1).bytes;
    } catch (const Error&) {
      return bounds;
    }
  }
}

}  // namespace fp8kv::test
