#include "calib/calibration_run.h"

#include <algorithm>
#include <utility>

#include "checkpoint/identity/fingerprint.h"
#include "checkpoint/identity/model_identity.h"
#include "checkpoint/identity/sampled_rows.h"
#include "policy/make_scales.h"

namespace fp8kv {

ModelIdentity whole_identity(const Checkpoint& checkpoint, const ModelConfig& config) {
  ModelIdentity identity = model_identity(checkpoint, config);
  identity.rows = sampled_rows(checkpoint, config);
  identity.projections = model_fingerprint(checkpoint, config);
  return identity;
}

void add_calibration(const ModelConfig& config, const ModelIdentity& identity,
                     CountedWindows counted, KvScales& scales) {
  const Windows& windows = counted.windows;
  size_t longest = 0;
  for (const auto& window : windows.ids) longest = std::max(longest, window.size());
  add_run(config,
          {.source = kCalibrateSource,
           .tool_version = FP8KV_VERSION,
           .model_fingerprint = fingerprint_of(identity),
           .model_identity = identity,
           .parts = std::move(counted.parts),
           .documents = windows.documents,
           .windows = windows.ids.size(),
           .tokens = windows.tokens,
           .data = windows.files,
           .chat_templates = windows.chat_templates,
           .shards = std::move(counted.shards),
           .longest_window = longest},
          scales);
}

}  // namespace fp8kv
