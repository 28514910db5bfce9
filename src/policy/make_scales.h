// From magnitudes to scales: the one place where a policy is applied, whoever asks for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "core/config.h"
#include "core/scales.h"
#include "policy/magnitudes.h"
#include "policy/policies.h"

namespace fp8kv {

inline constexpr const char* kCalibrateSource = "fp8kv calibrate";

// Scales for E4M3FN or NVFP4 with the amax and the octaves that they came from, and how they were
// made. The same magnitudes and the same policy give the same bits. A layer without heads gets no
// scales. Throws where the policy cannot make scales for the format, and as check_values does where
// it makes a scale that cannot be used. `latent` as in KvScales.
KvScales make_scales(const std::vector<LayerMagnitudes>& layers, const Policy& policy,
                     bool latent = false, KvFormat format = KvFormat::e4m3fn);

// Throws a usage Error where the policy makes no scales for the format.
void check_policy_for(const Policy& policy, KvFormat format);

// The two parts of it. The first goes by scales.latent and scales.format. Magnitudes without
// histograms will do for the first where the policy needs none.
void apply_policy(const Policy& policy, const std::vector<LayerMagnitudes>& layers,
                  KvScales& scales);
void add_magnitudes(const std::vector<LayerMagnitudes>& layers, Provenance& provenance);

// A run of text through a model in which magnitudes were counted.
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
  uint64_t longest_window = 0;  // in tokens; 0 where that is not known
};

// Says in `scales` that they come from this run of the model.
void add_run(const ModelConfig& config, CountedRun run, KvScales& scales);

// Says on `log` in which layers K or V is zero throughout, so that the scale is 1. REQUIRES amax.
void warn_of_zeros(const KvScales& scales, Log& log);

// How the scales of a calibration were made. Throws for a policy of another version.
Policy policy_of(const KvScales& scales);

// Its name; "" for scales from elsewhere.
std::string policy_name(const KvScales& scales);

}  // namespace fp8kv
