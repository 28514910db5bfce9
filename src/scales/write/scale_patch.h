// What makes a checkpoint carry scales, as bytes. Writes nothing.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/scales.h"
#include "scales/write/inject_targets.h"
#include "scales/write/scale_shard.h"

namespace fp8kv {

struct ScalePatch {
  std::map<std::string, std::string> files;  // contents by name: the new shard, index, configs
  IndexChanges changes;
  bool has_q = false;              // scales of Q were written
  std::vector<std::string> notes;  // what was changed on the way, and what to know
};

// Each layer with a KV cache gets the tensors that the target asks for, in F32, under the name that
// the checkpoint's k_proj of that layer has. Their shape is [n_kv_heads, 1, 1] where scales are per
// head and the config can say so; else [], and heads are reduced to their maximum. Scales for FNUZ
// are halved. The configs keep every byte but what they say of the cache: kv_cache_torch_dtype, and
// the target's block or an extension of the model's own.
//
// Beside a compressed-tensors config one scale has shape [1], as that package writes it, and a
// model.safetensors gets the name of a first shard. transformers refuses [], and where there is a
// model.safetensors it does not set the scales at all (seen with transformers 5.23 and
// compressed-tensors 0.20).
//
// Scales of NVFP4 get ModelOpt's names and config, which vLLM alone reads: k_proj.k_scale and
// v_proj.v_scale of shape [], a config that leaves every weight as it is, and no
// kv_cache_torch_dtype, which has no name for such a cache.
//
// kv_scale is never written beside k_scale where there is a quantization_config: vLLM and SGLang
// then take both for K. With `replace` the scales the checkpoint has are dropped, and so is a
// quantization_config that is there for the cache alone.
// Throws for a model that the target cannot take. REQUIRES scales that fit the checkpoint.
ScalePatch make_patch(const Checkpoint& checkpoint, const KvScales& scales,
                      const InjectTarget& target, bool replace);

}  // namespace fp8kv
