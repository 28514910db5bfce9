// Checks tensors of drafters and draft layers against what is computed with them.
#pragma once

#include "checkpoint/model_weights.h"

namespace fp8kv {

// The way out of errors about drafts that are not measured.
inline constexpr const char* kDraftNotMeasured = "its scales have to come from elsewhere";

// Throws unless the tensor exists, has its shape, and is of numbers in 16 or 32 bits.
void check_stored(const ModelWeights& weights, const ModelTensor& tensor);

}  // namespace fp8kv
