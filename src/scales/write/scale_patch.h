// The changes that make a checkpoint carry scales, as bytes. Writes nothing.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/scales/scales.h"
#include "scales/write/inject_targets.h"
#include "scales/write/scale_shard.h"

namespace fp8kv {

struct ScalePatch {
  std::map<std::string, std::string> files;  // contents by name: shard, index, configs
  IndexChanges changes;
  bool has_q = false;              // scales of Q were written
  std::vector<std::string> notes;  // conversions that were made, and other things to know
};

// Each layer with a KV cache gets the tensors that the target asks for, in F32, with the prefix of
// that layer's k_proj in the checkpoint. Their shape is [n_kv_heads, 1, 1] if scales are per head
// and the config can say so. Otherwise the shape is [], and heads are reduced to their maximum.
// Scales for FNUZ are halved. The configs keep every byte except what concerns the cache:
// kv_cache_torch_dtype, and the target's block or an extension of the model's own.
//
// With a compressed-tensors config, a single scale has shape [1], as that package writes it. A
// model.safetensors is renamed to a first shard. transformers refuses shape [], and sets no scales
// at all if there is a model.safetensors. Seen with transformers 5.23 and compressed-tensors 0.20.
//
// Scales of NVFP4 get ModelOpt's names and config, which only vLLM reads. The names are
// k_proj.k_scale and v_proj.v_scale, of shape []; the config leaves every weight as it is. There is
// no kv_cache_torch_dtype, which has no name for such a cache.
//
// With a quantization_config, kv_scale is never written beside k_scale: vLLM and SGLang would take
// both for K. With `replace`, the checkpoint's own scales are dropped, and so is a
// quantization_config that only serves the cache.
// Throws for a model that the target cannot take. REQUIRES scales that fit the checkpoint.
ScalePatch make_patch(const Checkpoint& checkpoint, const KvScales& scales,
                      const InjectTarget& target, bool replace);

}  // namespace fp8kv
