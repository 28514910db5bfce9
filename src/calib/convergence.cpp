#include "calib/convergence.h"

#include "base/error.h"
#include "calib/collect.h"
#include "data/dataset.h"

namespace fp8kv {

Convergence collect_in_parts(const Checkpoint& checkpoint, const ModelConfig& config,
                             Backend& backend, const std::vector<std::vector<int32_t>>& windows,
                             const std::vector<size_t>& counts, Log& log) {
  Convergence found;
  size_t from = 0;
  uint64_t tokens = 0;
  for (const size_t count : counts) {
    if (count <= from) continue;
    const std::vector<std::vector<int32_t>> part(windows.begin() + static_cast<ptrdiff_t>(from),
                                                 windows.begin() + static_cast<ptrdiff_t>(count));
    from = count;
    tokens += tokens_in(part);
    add_up(found.magnitudes, collect_magnitudes(checkpoint, config, backend, part, log));
    AmaxAfter& after = found.parts.emplace_back();
    after.tokens = tokens;
    for (const LayerMagnitudes& layer : found.magnitudes) after.layers.push_back(layer_amax(layer));
  }
  FP8KV_ASSERT(from > 0);
  return found;
}

}  // namespace fp8kv
