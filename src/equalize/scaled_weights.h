// Weights times powers of two: whether that is exact, and the bytes.
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

// By unit, the exponents of each group.
using LayerExponents = std::vector<Exponents>;
using AllowedExponents = std::vector<std::vector<ExponentSet>>;

// The exponents that leave every weight of these tensors exact: none overflows, none becomes
// subnormal, and where 1 is added to a weight the sum, in f32, is scaled without rounding.
AllowedExponents exact_exponents(const Checkpoint& checkpoint,
                                 std::span<const FoldedTensor> tensors, int64_t units,
                                 const ChannelGroups& groups);

// The tensor's bytes with the factors in its rows. REQUIRES exponents that exact_exponents has.
std::string scaled_tensor(const Checkpoint& checkpoint, const FoldedTensor& tensor,
                          const LayerExponents& exponents, const ChannelGroups& groups);

}  // namespace fp8kv
