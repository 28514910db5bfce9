#include "commands/advised_scales.h"

#include <algorithm>

#include "base/error.h"
#include "checkpoint/fingerprint.h"
#include "checkpoint/model_identity.h"
#include "checkpoint/sampled_rows.h"
#include "policy/make_scales.h"
#include "report/advice.h"
#include "report/verdict.h"
#include "scales/scale_file.h"

namespace fp8kv {

ModelIdentity whole_identity(const Checkpoint& checkpoint, const ModelConfig& config) {
  ModelIdentity identity = model_identity(checkpoint, config);
  identity.rows = sampled_rows(checkpoint, config);
  identity.projections = model_fingerprint(checkpoint, config);
  return identity;
}

KvScales advised_scales(const Checkpoint& checkpoint, const EvalReport& report,
                        const Windows& windows, const AmaxParts& parts) {
  const CandidateReport* cache = advise(report).cache;
  const bool broken = cache != nullptr && loss_of(*cache) == Loss::broken;
  if (cache == nullptr || !cache->scales || broken) {
    throw Error(cat("--write-scales: ",
                    cache == nullptr ? "no quantised cache was measured"
                    : broken         ? cat(cache->name, " is broken")
                                     : cat(cache->name, ", which is advised, has no scales"),
                    ": nothing was written"),
                "measure --policy amax", ErrorKind::check);
  }
  KvScales scales = with_format(*cache->scales, stored_format(cache->scales->format));
  scales.skipped = cache->skipped;
  const ModelIdentity identity = whole_identity(checkpoint, report.config);
  size_t longest = 0;
  for (const auto& window : windows.ids) longest = std::max(longest, window.size());
  add_run(report.config,
          {.source = kCalibrateSource,
           .tool_version = FP8KV_VERSION,
           .model_fingerprint = fingerprint_of(identity),
           .model_identity = identity,
           .parts = parts,
           .documents = windows.documents,
           .windows = windows.ids.size(),
           .tokens = windows.tokens,
           .data = windows.files,
           .chat_templates = windows.chat_templates,
           .longest_window = longest},
          scales);
  return scales;
}

}  // namespace fp8kv
