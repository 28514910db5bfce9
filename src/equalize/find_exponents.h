// The exponents of a whole model: what is allowed, what is found on samples of K, and what is kept.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/log.h"
#include "calib/key_samples.h"
#include "checkpoint/checkpoint.h"
#include "core/config.h"
#include "core/kv_format.h"
#include "equalize/channel_groups.h"
#include "equalize/scaled_weights.h"

namespace fp8kv {

// One layer. Without units where it writes no cache.
struct LayerFactors {
  ChannelGroups groups;
  LayerExponents exponents;    // [units][groups]; all 0 where they were not kept
  std::vector<bool> kept;      // [units]
  std::vector<double> ratios;  // [units]: the error on held-out windows, as a share of before
};

struct FactorCounts {
  int64_t units = 0;
  int64_t kept = 0;
  int least = 0, most = 0;  // exponents
};
FactorCounts count_factors(std::span<const LayerFactors> layers);

// Exponents of every layer, found on the first part of the samples and kept where they hold up on
// the second. The same bits for any number of threads. REQUIRES check_foldable.
std::vector<LayerFactors> find_exponents(const Checkpoint& checkpoint, const ModelConfig& config,
                                         std::span<const LayerSample> samples, KvFormat format,
                                         int threads, Log& log);

}  // namespace fp8kv
