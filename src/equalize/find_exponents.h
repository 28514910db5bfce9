// Finds the exponents of a whole model: what is allowed, what samples of K suggest, and what is
// kept.
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

// The factors of one layer; no units if it writes no cache.
struct LayerFactors {
  ChannelGroups groups;
  LayerExponents exponents;    // [units][groups]; all 0 if they were not kept
  std::vector<bool> kept;      // [units]
  std::vector<double> ratios;  // [units]: error on held-out windows, relative to no exponents
};

struct FactorCounts {
  int64_t units = 0;
  int64_t kept = 0;
  int least = 0, most = 0;  // exponents
};
FactorCounts count_factors(std::span<const LayerFactors> layers);

// Returns the exponents of every layer. They are found on the first part of the samples and kept if
// they hold up on the second. The same bits for any number of threads. REQUIRES check_foldable.
std::vector<LayerFactors> find_exponents(const Checkpoint& checkpoint, const ModelConfig& config,
                                         std::span<const LayerSample> samples, KvFormat format,
                                         int threads, Log& log);

}  // namespace fp8kv
