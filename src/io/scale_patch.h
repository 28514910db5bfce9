// The three files that make a checkpoint carry scales, as bytes. Writes nothing.
#pragma once

#include <string>
#include <vector>

#include "core/scales.h"
#include "io/checkpoint.h"

namespace fp8kv {

// The new shard. Sorts behind model-00001-of-..., so that readers who take the model's dtype from
// the first shard still see weights, and avoids "args" and "training", which TGI leaves out.
inline constexpr const char* kScaleShard = "model-kv-scales.safetensors";
inline constexpr const char* kIndexFile = "model.safetensors.index.json";

struct ScalePatch {
  std::string shard;               // of kScaleShard
  std::string index;               // of kIndexFile
  std::string config;              // of config.json
  std::vector<std::string> notes;  // what was changed on the way, and what to know
};

// For TGI, of the KV-cache branch and since 2.4: per layer `kv_scale`, the maximum of K and V,
// `k_scale` and `v_scale`, F32 of shape [], named like the checkpoint's own k_proj; and
// kv_cache_torch_dtype in the config, of which every other byte stays. Scales for FNUZ are halved,
// those of several heads reduced to their maximum.
// REQUIRES scales that fit the checkpoint, which has none itself.
ScalePatch tgi_patch(const Checkpoint& checkpoint, const KvScales& scales);

}  // namespace fp8kv
