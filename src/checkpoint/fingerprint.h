// The fingerprint of version 1: a digest that tells whether scales were made from these K and V
// projections. Says nothing of what else decides K and V; see core/model_identity.h for what does.
#pragma once

#include <optional>
#include <string>

#include "checkpoint/checkpoint.h"
#include "core/model_description.h"

namespace fp8kv {

// "kv-proj-v1:<sha256>". Over every layer's K and V weight and bias in order: name, dtype, shape,
// and up to four blocks of 1,024 bytes spread evenly over the data, so that a 140 GB model costs
// milliseconds. A fine-tune changes it; moving, sharding or renaming files does not.
//
// For any model that names them "layers.N.self_attn.{k_proj,v_proj,qkv_proj}", or with "mixer" as
// Nemotron-H has it, or as older models do ("h.N.attn.c_attn"), under any prefix: the stack with
// the most of the config's layers counts (of equals the first in order), and its prefix is not a
// part of the names. Layers without attention have no share. nullopt when no layer has both K and
// V.
std::optional<std::string> find_fingerprint(const Checkpoint& checkpoint,
                                            const ModelDescription& model);
// The same; throws where there is none.
std::string model_fingerprint(const Checkpoint& checkpoint, const ModelDescription& model);

}  // namespace fp8kv
