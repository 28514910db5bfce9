#include "commands/parts/advised_scales.h"

#include "base/error.h"
#include "calib/calibration_run.h"
#include "report/advice.h"
#include "report/verdict.h"

namespace fp8kv {

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
  add_calibration(report.config, identity, {.windows = windows, .parts = parts, .shards = {}},
                  scales);
  return scales;
}

}  // namespace fp8kv
