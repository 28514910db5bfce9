#include "config/families/groups/mixing_streams.h"

#include "config/values/config_values.h"

namespace fp8kv {

void parse_mixing_streams(const Json& config, ModelConfig& out) {
  HyperConfig& hyper = out.hyper.emplace();
  const auto count = config.find("hc_mult"), rounds = config.find("hc_sinkhorn_iters");
  constexpr int64_t kUsualRounds = 20, kMostRounds = 1000;
  hyper.count = count ? in_range(*count, 2, kMostStreams) : 4;
  hyper.rounds = rounds ? in_range(*rounds, kMostRounds) : kUsualRounds;
  hyper.eps = positive_or(config, "hc_eps", 1e-6);
  hyper.eps_written = false;
}

}  // namespace fp8kv
