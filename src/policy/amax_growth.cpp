#include "policy/amax_growth.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace fp8kv {
namespace {

// Returns `all` / `part`, the largest ratio over the heads. A rise from 0 counts as infinite.
double ratio_of(const std::vector<float>& part, const std::vector<float>& all, GrowthOf of) {
  const auto ratio = [](float from, float to) {
    return to == from ? 1 : double{to} / double{from};
  };
  if (of == GrowthOf::layer) return ratio(largest(part), largest(all));
  double most = 1;
  for (size_t head = 0; head < all.size(); ++head) {
    most = std::max(most, ratio(part[head], all[head]));
  }
  return most;
}

}  // namespace

double AmaxGrowth::octaves() const {
  return std::log2(1 + share);
}

std::string AmaxGrowth::where() const {
  return cat("layer ", layer, key ? " K" : " V");
}

std::vector<LayerGrowth> layer_growth(const AmaxAfter& before, const AmaxAfter& after,
                                      GrowthOf of) {
  FP8KV_ASSERT(before.tokens > 0 && before.tokens <= after.tokens);
  FP8KV_ASSERT(before.layers.size() == after.layers.size());
  const double doublings =
      std::log2(static_cast<double>(after.tokens) / static_cast<double>(before.tokens));
  const auto share = [&](const std::vector<float>& part, const std::vector<float>& all) {
    const double ratio = ratio_of(part, all, of);
    return ratio == 1 ? 0 : std::pow(ratio, 1 / doublings) - 1;
  };
  std::vector<LayerGrowth> growth;
  for (size_t layer = 0; layer < after.layers.size(); ++layer) {
    const LayerAmax &part = before.layers[layer], &all = after.layers[layer];
    growth.push_back({share(part.k, all.k), share(part.v, all.v)});
  }
  return growth;
}

AmaxGrowth amax_growth(const AmaxAfter& before, const AmaxAfter& after, GrowthOf of) {
  AmaxGrowth fastest;
  const std::vector<LayerGrowth> layers = layer_growth(before, after, of);
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    for (const bool key : {true, false}) {
      const double share = key ? layers[layer].k : layers[layer].v;
      if (share > fastest.share) fastest = {layer, key, share};
    }
  }
  return fastest;
}

}  // namespace fp8kv
