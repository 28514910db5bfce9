// The effect on F32 scales if a runtime stores them in the model's dtype.
#pragma once

#include <optional>
#include <string>

#include "checkpoint/checkpoint.h"
#include "core/numbers/dtype.h"
#include "core/scales/scales.h"

namespace fp8kv {

// The 16-bit dtype in which runtimes hold a model by default. Taken from config.json, or else from
// most of the model's weights. Returns nullopt for any other dtype.
std::optional<DType> serving_dtype(const Checkpoint& checkpoint);

struct ScaleAt {
  size_t layer = 0;
  char of = 'K';  // or 'V'
  float scale = 0;
  float stored = 0;  // rounded to that dtype
};

struct ScaleRounding {
  double error = 0;                  // the largest |stored / scale - 1|
  ScaleAt farthest;                  // the scale with that error; ties: the first
  std::optional<ScaleAt> lost;       // the first that becomes 0, infinite or another subnormal
  std::optional<ScaleAt> subnormal;  // the first that becomes subnormal, but keeps its value
};

// REQUIRES f16 or bf16.
ScaleRounding scale_rounding(const KvScales& scales, DType dtype);

// "2e-08 becomes 0 in float16".
std::string lost_number_text(const ScaleAt& lost, DType dtype);
// "layer 3 V: 2e-08 becomes 0 in float16".
std::string lost_text(const ScaleAt& lost, DType dtype);

// Rounds each scale up to the next power of two, which every dtype with that range can hold. The
// steps of FP8 codes are relative, so precision stays. At most half of the room above the largest
// value is lost.
KvScales at_powers_of_two(const KvScales& scales);

}  // namespace fp8kv
