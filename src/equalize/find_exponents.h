// Finds the exponents of a whole model: what is allowed, what samples of K suggest, and what is
// kept.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/log.h"
#include "calib/measure/key_samples.h"
#include "checkpoint/checkpoint.h"
#include "core/cache/kv_format.h"
#include "core/model/config.h"
#include "equalize/channel_groups.h"
#include "equalize/kept_exponents.h"
#include "equalize/scaled_weights.h"

namespace fp8kv {

// The factors of one layer; no units if it writes no cache.
struct LayerFactors {
  ChannelGroups groups;
  LayerExponents exponents;  // [units][groups]; all 0 if they were not kept
  std::vector<bool> kept;    // [units]
};

struct FactorCounts {
  int64_t units = 0;
  int64_t kept = 0;
  int least = 0, most = 0;  // exponents
};
FactorCounts count_factors(std::span<const LayerFactors> layers);

struct FindOptions {
  KvFormat format = KvFormat::int8_per_token_head;
  int threads = 1;
  const KeptExponents* kept = nullptr;  // layers are taken from there and kept there; null: none
};

// Returns the exponents of every layer. They are found on the first part of the samples and kept if
// they hold up on the second. The same bits for any number of threads, with or without `kept`.
// REQUIRES check_foldable.
std::vector<LayerFactors> find_exponents(const Checkpoint& checkpoint, const ModelConfig& config,
                                         std::span<const LayerSample> samples,
                                         const FindOptions& options, Log& log);

}  // namespace fp8kv
