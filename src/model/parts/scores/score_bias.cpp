#include "model/parts/scores/score_bias.h"

#include <bit>
#include <cmath>

#include "base/error.h"
#include "core/numbers/half.h"

namespace fp8kv {
namespace {

float rounded_to_bf16(double x) {
  return bf16_to_float(bf16_from_float(static_cast<float>(x)));
}

}  // namespace

std::vector<double> alibi_slopes(int64_t n_heads) {
  const auto even = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(n_heads)));
  std::vector<double> slopes;
  for (int64_t i = 0; i < n_heads; ++i) {
    const auto step = static_cast<double>(i < even ? 2 * (i + 1) : 2 * (i - even) + 1);
    slopes.push_back(std::exp2(-4 * step / static_cast<double>(even)));
  }
  return slopes;
}

std::vector<float> score_bias_table(const ModelConfig& config, int64_t n_positions) {
  FP8KV_ASSERT(config.block.score_bias != ScoreBias::none);
  const bool in_bf16 = config.block.score_bias == ScoreBias::alibi_bf16;
  const float scale = 1.0f / std::sqrt(static_cast<float>(config.head_dim()));
  std::vector<float> table;
  for (const double slope : alibi_slopes(config.n_heads)) {
    for (int64_t position = 0; position < n_positions; ++position) {
      const auto at = static_cast<double>(position);
      table.push_back(in_bf16
                          ? rounded_to_bf16(rounded_to_bf16(slope) * rounded_to_bf16(at)) * scale
                          : static_cast<float>(static_cast<float>(slope) * at));
    }
  }
  return table;
}

}  // namespace fp8kv
