#include "calib/measure/collected.h"

#include "base/error.h"

namespace fp8kv {
namespace {

// A draft layer without heads has counted nothing yet.
void add_drafts(std::vector<LayerMagnitudes>& sum, const std::vector<LayerMagnitudes>& other) {
  FP8KV_ASSERT(sum.size() == other.size());
  for (size_t i = 0; i < sum.size(); ++i) {
    if (!sum[i].has_cache()) {
      sum[i] = other[i];
    } else if (other[i].has_cache()) {
      sum[i].add(other[i]);
    }
  }
}

}  // namespace

void add_up(CollectedMagnitudes& sum, const CollectedMagnitudes& other) {
  if (sum.layers.empty()) {
    sum = other;
    return;
  }
  add_up(sum.layers, other.layers);
  add_drafts(sum.drafts, other.drafts);
  for (size_t part = 0; part < kTextParts; ++part) add_up(sum.parts[part], other.parts[part]);
  FP8KV_ASSERT(sum.reached.size() == other.reached.size());
  for (size_t layer = 0; layer < sum.reached.size(); ++layer) {
    for (size_t expert = 0; expert < sum.reached[layer].size(); ++expert) {
      sum.reached[layer][expert] += other.reached[layer][expert];
    }
  }
}

}  // namespace fp8kv
