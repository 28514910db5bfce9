#include "equalize/channel_groups.h"

namespace fp8kv {

ChannelGroups channel_groups(const ModelConfig& config, int64_t layer) {
  const int64_t dim = config.layer(layer).k_head_dim;
  ChannelGroups groups;
  int64_t rotated = 0;
  if (config.turns(layer)) {
    const auto index = static_cast<size_t>(config.layer_ropes[static_cast<size_t>(layer)]);
    const RopeConfig& rope = config.ropes[index];
    rotated = rope.rotary_dim == 0 ? dim : rope.rotary_dim;
    for (int64_t i = 0; i < rotated / 2; ++i) {
      const bool halves = rope.pairs == RopePairs::halves;
      groups.push_back(halves ? std::vector{i, i + rotated / 2} : std::vector{2 * i, 2 * i + 1});
    }
  }
  for (int64_t i = rotated; i < dim; ++i) groups.push_back({i});
  return groups;
}

}  // namespace fp8kv
