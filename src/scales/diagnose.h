// What is remarkable about a set of scales: a name, a sentence and the remedy for each thing.
// Looks at the numbers and at what the file says of them; refuses nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/scales.h"
#include "scales/scale_tensors.h"

namespace fp8kv {

struct Diagnosis {
  std::string id;  // "all-ones"
  std::string sentence;
  std::string remedy;
  bool harmless = false;  // good to know, nothing to do
  bool grave = false;     // for every command that reads scales to say
  bool operator==(const Diagnosis&) const = default;
};

// "kv-fused: K and V share one scale, ...; calibrate to have both".
std::string diagnosis_text(const Diagnosis& diagnosis);

// What a scale of K or V can be, as it is for E4M3FN. The least is that of an amax of 2^-24, the
// least number of F16, where a layer's K or V is nothing; the largest is that of 65504, the largest
// number of F16, with a headroom of 64, beyond which precision is lost. Outside of them F16 holds
// no such value, and where a runtime keeps scales in F16 they become 0 or infinite soon after.
inline constexpr double kLeastScale = 0x1p-24 / 448;
inline constexpr double kLargestScale = 65504.0 / 448 * 64;

// All that there are, as the documentation lists them.
struct DiagnosisKind {
  const char* id;
  const char* meaning;
};
std::span<const DiagnosisKind> diagnosis_kinds();

// What numbers alone do not tell.
struct ScaleCase {
  std::vector<ScaleTensor> tensors;  // in use; values need not make sense
  const Dialect* dialect = nullptr;  // of the scales in use; nullptr for our own
  Observation observed = Observation::unknown;
  std::string observer;  // as in KvConfig
  float floor = 0;       // smaller scales were raised to this; 0 for no
  KvFormat format = KvFormat::e4m3fn;
  std::vector<bool> has_cache;  // one for every layer of the model
  bool layers_unclear = false;  // has_cache is true for all, since it is not known
  bool k_norm = false;          // the model normalises K between its projection and RoPE
};

std::vector<Diagnosis> diagnose(const ScaleCase& found);

// For a checkpoint without scales whose config says that the cache is FP8; `said` names the file
// that says so.
Diagnosis diagnose_absence(const std::string& said, bool modelopt);

// For a scale of Q that no Q leads to.
Diagnosis diagnose_q(const std::string& tensor, float value);

// For a file that leaves out layers and has no word of why, as one of vLLM's schema alone.
std::optional<Diagnosis> diagnose_gaps(const std::vector<bool>& has_cache);

// Whether all of `values` are 1 / h for some F16 or BF16 number h, as AutoFP8 computes them.
// Numbers no scale can be are left out.
bool is_autofp8_rounding(const std::vector<float>& values);

}  // namespace fp8kv
