// The scale file of the cache that an evaluation advises.
#pragma once

#include <vector>

#include "checkpoint/checkpoint.h"
#include "data/dataset.h"
#include "eval/eval_report.h"

namespace fp8kv {

// The scale file that `calibrate` makes of the same windows and policy, byte for byte. Draft layers
// are missing, because an evaluation does not measure them.
// Throws if the advised cache has no scales to write. REQUIRES EvalReport::calibration, of
// `windows`, and `parts` from collect().
KvScales advised_scales(const Checkpoint& checkpoint, const EvalReport& report,
                        const Windows& windows, const AmaxParts& parts);

}  // namespace fp8kv
