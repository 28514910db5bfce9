// Multiplies weights, or their scales, by powers of two: checks that this is exact, and makes the
// bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "equalize/channel_groups.h"
#include "equalize/exponents.h"
#include "equalize/fold_places.h"

namespace fp8kv {

// Indexed by unit, then by group.
using LayerExponents = std::vector<Exponents>;
using AllowedExponents = std::vector<std::vector<ExponentSet>>;

// The exponents that keep every weight of these tensors exact. No weight and no scale overflows or
// becomes subnormal. If the model adds 1 to a weight, the F32 sum is scaled without rounding.
AllowedExponents exact_exponents(const Checkpoint& checkpoint,
                                 std::span<const FoldedTensor> tensors, int64_t units,
                                 const ChannelGroups& groups);

// The tensor's bytes with the factors in its rows. REQUIRES exponents from exact_exponents.
std::string scaled_tensor(const Checkpoint& checkpoint, const FoldedTensor& tensor,
                          const LayerExponents& exponents, const ChannelGroups& groups);

}  // namespace fp8kv
