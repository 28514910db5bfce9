// The scale tensors that a folder gets for its draft layers.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/scales/scales.h"
#include "scales/write/inject_targets.h"

namespace fp8kv {

struct DraftTensor {
  std::string name;
  std::vector<float> values;  // one, or one per KV head
};

// The tensors of the checkpoint's draft layers, under the names that draft loaders read. Empty if
// the target's runtime has no draft layers.
std::vector<DraftTensor> draft_tensors(const Checkpoint& checkpoint, const KvScales& scales,
                                       const InjectTarget& target);

// Notes on draft scales that are left out: the checkpoint lacks the layer, or the target has no
// names for it.
std::vector<std::string> drafts_left_out(const Checkpoint& checkpoint, const KvScales& scales,
                                         const InjectTarget& target);

// Warnings about the checkpoint's draft layers that get no scales.
std::vector<std::string> drafts_at_one(const Checkpoint& checkpoint, const KvScales& scales);

}  // namespace fp8kv
