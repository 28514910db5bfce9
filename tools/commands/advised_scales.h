// The scales of the cache that an evaluation advises, as a scale file.
#pragma once

#include <vector>

#include "checkpoint/checkpoint.h"
#include "data/dataset.h"
#include "eval/eval_report.h"

namespace fp8kv {

// The file that `calibrate` makes of the same windows and policy, byte for byte, but for draft
// layers, which an evaluation does not measure. Throws where the advised cache has no scales to
// write. REQUIRES EvalReport::calibration, of `windows`, and `parts` as collect() gives them.
KvScales advised_scales(const Checkpoint& checkpoint, const EvalReport& report,
                        const Windows& windows, const AmaxParts& parts);

}  // namespace fp8kv
