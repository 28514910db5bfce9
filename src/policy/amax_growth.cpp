#include "policy/amax_growth.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace fp8kv {
namespace {

// `all` / `part`, the largest over the heads. What was 0 and no longer is grew without bound.
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

AmaxGrowth amax_growth(const AmaxAfter& before, const AmaxAfter& after, GrowthOf of) {
  FP8KV_ASSERT(before.tokens > 0 && before.tokens <= after.tokens);
  FP8KV_ASSERT(before.layers.size() == after.layers.size());
  const double doublings =
      std::log2(static_cast<double>(after.tokens) / static_cast<double>(before.tokens));
  AmaxGrowth fastest;
  for (size_t layer = 0; layer < after.layers.size(); ++layer) {
    for (const bool key : {true, false}) {
      const auto tensor = key ? &LayerAmax::k : &LayerAmax::v;
      const double ratio = ratio_of(before.layers[layer].*tensor, after.layers[layer].*tensor, of);
      const double share = ratio == 1 ? 0 : std::pow(ratio, 1 / doublings) - 1;
      if (share > fastest.share) fastest = {layer, key, share};
    }
  }
  return fastest;
}

}  // namespace fp8kv
