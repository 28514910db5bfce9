// What becomes of F32 scales where a runtime stores them in the model's dtype.
#pragma once

#include <optional>
#include <string>

#include "checkpoint/checkpoint.h"
#include "core/dtype.h"
#include "core/scales.h"

namespace fp8kv {

// The 16-bit dtype in which runtimes hold a model unless they are told otherwise: that of its
// config.json, or where that has none, of most of its weights; nullopt for another.
std::optional<DType> serving_dtype(const Checkpoint& checkpoint);

struct ScaleAt {
  size_t layer = 0;
  char of = 'K';  // or 'V'
  float scale = 0;
  float stored = 0;  // as that dtype has it
};

struct ScaleRounding {
  double error = 0;             // the largest of |stored / scale - 1|
  ScaleAt farthest;             // where; of the first layer
  std::optional<ScaleAt> lost;  // the first that becomes 0, infinite or another that is subnormal
  std::optional<ScaleAt> subnormal;  // the first that is subnormal, and still the same number
};

// REQUIRES f16 or bf16.
ScaleRounding scale_rounding(const KvScales& scales, DType dtype);

// "2e-08 becomes 0 in float16".
std::string lost_number_text(const ScaleAt& lost, DType dtype);
// "layer 3 V: 2e-08 becomes 0 in float16".
std::string lost_text(const ScaleAt& lost, DType dtype);

// Each scale at the next power of two that is not below it: a float of every dtype whose range
// has it. FP8 codes lose nothing by that, as their steps are relative: half of the room above the
// largest value goes, at most.
KvScales at_powers_of_two(const KvScales& scales);

}  // namespace fp8kv
