// A calibration in about twenty lines for any model: the verdict, the layers to look at, and the
// next command.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/scales/scales.h"
#include "report/serving_names.h"

namespace fp8kv {

// Bytes of one token in the caches of all layers.
struct BytesOfToken {
  std::string own_dtype;      // the model's dtype: "bfloat16"
  uint64_t own_bytes = 0;     // in that dtype
  uint64_t format_bytes = 0;  // in the format of the scales
};

// `memory` is nullopt if the model is not known. REQUIRES has_evidence().
std::string calibration_summary(const KvScales& scales, const ServingNames& names,
                                const std::optional<BytesOfToken>& memory = std::nullopt);

// A row for each layer with its amax and scales, then certificate_text(). REQUIRES has_evidence().
std::string calibration_tables(const KvScales& scales);

}  // namespace fp8kv
