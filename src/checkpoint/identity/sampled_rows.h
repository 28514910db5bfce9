// Samples pieces of many rows of every matrix that influences K and V, so that changes of a few
// rows are noticed. It complements model_identity, which reads four blocks of each tensor.
#pragma once

#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/model/config.h"
#include "core/model/model_identity.h"

namespace fp8kv {

// Returns the samples of each layer:
//   tensors that make K or V    up to 128 rows each
//   other matrices              up to 128 rows each, fewer if a model has many
//   matrices of an expert       one row each
// It reads 512 bytes of each row, at places that differ from layer to layer. Small matrices have
// all rows sampled. A cold read costs a page of 4 KiB for each row: 140 MB for a model of 140 GB,
// plus the matrices of experts. Quantised weights count as decoded. Throws like Checkpoint::read.
// REQUIRES the config from read_model_config.
std::vector<RowsIdentity> sampled_rows(const Checkpoint& checkpoint, const ModelConfig& config);

}  // namespace fp8kv
