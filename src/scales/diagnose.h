// Diagnoses of a set of scales: each has a name, a sentence and a remedy.
// Looks at the numbers and at what the file says of them. Refuses nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/scales/scales.h"
#include "scales/diagnosis_kinds.h"
#include "scales/scale_tensors.h"

namespace fp8kv {

// The plausible range of a scale of K or V, for E4M3FN. The least scale belongs to an amax of
// 2^-24, the smallest F16 number, as in a layer whose K or V is almost zero. The largest belongs to
// 65504, the largest F16 number, with a headroom of 64; a larger headroom loses precision. F16 has
// no amax outside this range, and a runtime that keeps scales in F16 soon turns them into 0 or
// infinity.
inline constexpr double kLeastScale = 0x1p-24 / 448;
inline constexpr double kLargestScale = 65504.0 / 448 * 64;

// The input of `diagnose`: the scales, and facts that the numbers do not show.
struct ScaleCase {
  std::vector<ScaleTensor> tensors;  // in use; values need not make sense
  const Dialect* dialect = nullptr;  // the dialect of the scales in use; nullptr for our own files
  Observation observed = Observation::unknown;
  std::string observer;  // as in KvConfig
  float floor = 0;       // smaller scales were raised to this; 0: no floor
  KvFormat format = KvFormat::e4m3fn;
  std::vector<bool> has_cache;  // one for every layer of the model
  bool layers_unclear = false;  // the cached layers are unknown: has_cache is true for all
  bool k_norm = false;          // the model normalises K between its projection and RoPE
};

std::vector<Diagnosis> diagnose(const ScaleCase& found);

// The diagnosis for a checkpoint without scales whose config asks for an FP8 cache. `said` names
// the file that asks for it.
Diagnosis diagnose_absence(const std::string& said, bool modelopt);

// The diagnosis for a scale of Q that no amax of Q could have produced.
Diagnosis diagnose_q(const std::string& tensor, float value);

// The diagnosis for a file that leaves out layers without saying why, as a plain vLLM file does.
std::optional<Diagnosis> diagnose_gaps(const std::vector<bool>& has_cache);

// Whether every value is 1 / h for some F16 or BF16 number h, as AutoFP8 computes scales. Values
// that cannot be scales are skipped.
bool is_autofp8_rounding(const std::vector<float>& values);

}  // namespace fp8kv
