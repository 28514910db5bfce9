// Pieces of many rows of every matrix from which K and V follow, so that a change of a few rows is
// seen. Complements model_identity, which reads four blocks of a tensor.
#pragma once

#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/config.h"
#include "core/model_identity.h"

namespace fp8kv {

// By layer. Up to 128 rows of every tensor that makes K or V, up to 128 of the other matrices,
// fewer where a model has many, and one row of each matrix of an expert: 512 bytes of each row, at
// places that differ from layer to layer. Small matrices are seen in all rows. A cold read costs a
// page of 4 KiB a row: 140 MB for a model of 140 GB, the number of its experts' matrices beside it.
// Quantised weights count as decoded. Throws as Checkpoint::read does. REQUIRES the config that
// read_model_config gave.
std::vector<RowsIdentity> sampled_rows(const Checkpoint& checkpoint, const ModelConfig& config);

}  // namespace fp8kv
