// Makes scales from magnitudes: the only place that applies a policy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "core/model/config.h"
#include "core/scales/scales.h"
#include "policy/magnitudes.h"
#include "policy/policies.h"

namespace fp8kv {

inline constexpr const char* kCalibrateSource = "fp8kv calibrate";

// Returns scales for E4M3FN or NVFP4, with their amax, octaves and policy. Equal magnitudes and
// policies give equal bits. A layer without heads gets no scales. Throws if the policy does not
// support the format, and as check_values does if it makes an unusable scale. `latent` as in
// KvScales.
KvScales make_scales(const std::vector<LayerMagnitudes>& layers, const Policy& policy,
                     bool latent = false, KvFormat format = KvFormat::e4m3fn);

// Throws a usage Error if the policy makes no scales for the format.
void check_policy_for(const Policy& policy, KvFormat format);

// The two steps of make_scales. apply_policy reads scales.latent and scales.format. It needs
// histograms only if the policy does.
void apply_policy(const Policy& policy, const std::vector<LayerMagnitudes>& layers,
                  KvScales& scales);
void add_magnitudes(const std::vector<LayerMagnitudes>& layers, Provenance& provenance);

// One run of text through a model that counted magnitudes.
struct CountedRun {
  std::string source;
  std::string tool_version;
  std::string model_fingerprint;
  std::optional<ModelIdentity> model_identity = {};
  AmaxParts parts = {};
  uint64_t documents = 0;
  uint64_t windows = 0;
  uint64_t tokens = 0;
  std::vector<DataFile> data = {};  // in any order
  std::vector<std::string> chat_templates = {};
  ShardNote shards = {};
  uint64_t longest_window = 0;  // in tokens; 0 if unknown
};

// Records in `scales` that they come from this run of the model.
void add_run(const ModelConfig& config, CountedRun run, KvScales& scales);

// Warns on `log` about layers whose K or V is zero throughout, so that the scale is 1. REQUIRES
// amax.
void warn_of_zeros(const KvScales& scales, Log& log);

// The policy that a calibration's scales were made by. Throws if another version wrote it.
Policy policy_of(const KvScales& scales);

// The policy's name; "" for scales that fp8kv did not calibrate.
std::string policy_name(const KvScales& scales);

}  // namespace fp8kv
