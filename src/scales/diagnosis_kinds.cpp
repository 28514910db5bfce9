#include "scales/diagnosis_kinds.h"

#include <algorithm>

#include "base/error.h"

namespace fp8kv {
namespace {

constexpr DiagnosisKind kKinds[] = {
    {"missing-layer", "some layers have no scale: a runtime uses 1 there"},
    {"extra-layer", "there are scales for layers that the model does not have"},
    {"negative-sentinel", "a negative scale: runtimes mark with it a scale that was never loaded"},
    {"implausible-scale",
     "a scale that no K or V in F16 or BF16 leads to: below 1.3e-10 or above 9358"},
    {"autofp8-zero",
     "a scale of 0: AutoFP8 divides in FP16, which overflows where amax is below 0.00684"},
    {"all-ones", "every scale is 1: nothing was measured, or all was raised to 1"},
    {"floored", "some scales were raised to a least value, as ModelOpt did until 0.42"},
    {"doubled-for-fnuz",
     "config.json says that the scales are for FNUZ GPUs, and so twice as large"},
    {"divided-by-240", "amax / 240 instead of amax / 448"},
    {"k-before-rope", "K was measured before RoPE, or before the model's K norm"},
    {"kv-fused", "K and V share one scale, the larger"},
    {"last-batch-observer", "scales of the last calibration batch alone"},
    {"moving-average-observer",
     "scales that follow a moving average, so that larger values saturate"},
    {"bf16-rounded", "rounded to BF16, by up to 0.4 %; harmless"},
    {"f16-rounded", "rounded to F16, by up to 0.05 %; harmless"},
    {"autofp8-rounding", "computed with rounding as AutoFP8 does; harmless"},
    {"unnamed-layers",
     "a file of vLLM's schema alone leaves out layers: right where they write no KV cache; "
     "harmless"},
    {"q-not-measured", "a scale of Q that no Q leads to: negative, 0, or far too small or large"},
    {"cast-without-scales", "the config says that the cache is FP8, and there are no scales"},
};

}  // namespace

Diagnosis known(Diagnosis diagnosis) {
  const bool found = std::any_of(std::begin(kKinds), std::end(kKinds),
                                 [&](const auto& kind) { return kind.id == diagnosis.id; });
  FP8KV_ASSERT(found);
  return diagnosis;
}

std::span<const DiagnosisKind> diagnosis_kinds() {
  return kKinds;
}

std::string diagnosis_text(const Diagnosis& diagnosis) {
  return cat(diagnosis.id, ": ", diagnosis.sentence, "; ", diagnosis.remedy);
}

}  // namespace fp8kv
