// Which tensors a folder gets for the layers that draft tokens.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/scales.h"
#include "scales/write/inject_targets.h"

namespace fp8kv {

struct DraftTensor {
  std::string name;
  std::vector<float> values;  // one, or one per KV head
};

// Those of the draft layers that the checkpoint has, under the names that the loaders of draft
// layers read; none where the target's runtime has no draft layers.
std::vector<DraftTensor> draft_tensors(const Checkpoint& checkpoint, const KvScales& scales,
                                       const InjectTarget& target);

// Scales of layers that the checkpoint does not have, or that the target has no names for, as
// notes.
std::vector<std::string> drafts_left_out(const Checkpoint& checkpoint, const KvScales& scales,
                                         const InjectTarget& target);

// Draft layers of the checkpoint that get no scales, as warnings.
std::vector<std::string> drafts_at_one(const Checkpoint& checkpoint, const KvScales& scales);

}  // namespace fp8kv
