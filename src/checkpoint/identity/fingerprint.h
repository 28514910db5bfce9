// The fingerprint of version 1: a digest that tells whether scales were made from these K and V
// projections. It ignores everything else that influences K and V. For the newer identity see
// core/model/model_identity.h.
#pragma once

#include <optional>
#include <string>

#include "checkpoint/checkpoint.h"
#include "core/model/model_description.h"

namespace fp8kv {

// Returns "kv-proj-v1:<sha256>". It covers every layer's K and V weight and bias in order: name,
// dtype, shape and some data. At most four blocks of 1,024 bytes are read, spread evenly over the
// data, so a 140 GB model costs milliseconds. A fine-tune changes the fingerprint; moving, sharding
// or renaming files does not.
//
// Works for any model with names like "layers.N.self_attn.{k_proj,v_proj,qkv_proj}", with "mixer"
// (Nemotron-H), or with older names ("h.N.attn.c_attn"), under any prefix. The stack with the most
// of the config's layers counts, the first of equals. Its prefix is not part of the names. Layers
// without attention are left out. nullopt if no layer has both K and V.
std::optional<std::string> find_fingerprint(const Checkpoint& checkpoint,
                                            const ModelDescription& model);
// Like find_fingerprint, but throws if there is none.
std::string model_fingerprint(const Checkpoint& checkpoint, const ModelDescription& model);

}  // namespace fp8kv
