// The room that the seen values leave at both ends of an E4M3 format, with the scales in force and
// with scales of 1. A verdict for each layer follows. All statements about the counts are exact:
// nothing is estimated, and nothing is said without evidence.
//
// With x the values of K or V in one layer, s a scale, and max and min_normal of the format:
// - saturation margin = log2(max * s / amax), the smallest over the heads. Negative if values
//   saturate. At 1 or more, the next octave of values would still fit.
// - underflow margin = log2(m / (min_normal * s)), where 2 m > median(|x|, x != 0) >= m and m is a
//   power of two. From 0 on, at least half of the values keep all mantissa bits; each octave below
//   costs them one bit. With a scale per head, s is the largest of them.
// - flushed = share of the nonzero values below half the smallest subnormal times s, which round to
//   zero. Values at exactly that half round to zero too, but are not counted.
// Values below 2^-39 count as zero here (core/numbers/octaves.h); FP16 has no such values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/scales/scales.h"
#include "report/evidence.h"

namespace fp8kv {

// The room in octaves that a scale of 1 must leave for values that were not seen.
inline constexpr double kLeastUnitSaturationMargin = 1;
// At this margin, normally distributed values have a relative RMS error of 5.0 %. The least that
// E4M3 can reach is 2.65 %, and E5M2 has 5.3 % at any scale. Measured with PyTorch's casts.
inline constexpr double kLeastUnderflowMargin = -1;
// Normally distributed values lose 7 % at that margin. More than a quarter means that a whole part
// of the tensor is lost, such as some channels.
inline constexpr double kMostFlushed = 0.25;

// The bounds of a share whose threshold lies somewhere inside an octave.
struct ShareRange {
  double least = 0;
  double most = 0;
  bool operator==(const ShareRange&) const = default;
};

// The margins of one tensor under one scale. Absent without evidence, or if all values are zero.
struct Margins {
  std::optional<double> saturation;
  std::optional<double> underflow;
  std::optional<ShareRange> subnormal;  // below min_normal * s, including flushed values
  std::optional<ShareRange> flushed;
};

enum class Verdict {
  unit_safe,    // a scale of 1 loses nothing that matters and leaves room
  needs_scale,  // a scale of 1 saturates or underflows, the scale from amax does not
  keep_16bit,   // underflows even if amax maps to the format's maximum
  unknown,      // the evidence is missing, or amax grows too fast for its room
  no_cache      // the layer writes no KV cache; only for whole layers
};

struct TensorCertificate {
  std::optional<float> amax;  // over all heads
  Margins in_force;
  Margins unit;
  Verdict verdict = Verdict::unknown;
  std::string reason;  // for any verdict but unit_safe: "K saturates at 1.0"
  // Whether the scale in force neither saturates nor underflows in the evidence; true without any.
  bool holds = true;
};

struct LayerCertificate {
  TensorCertificate k;  // empty if there is no cache, like v
  TensorCertificate v;
  // Q in E4M3, for attention that computes in FP8. Absent if its magnitudes are unknown, and for
  // caches of latents or NVFP4. Does not count for the layer's verdict.
  std::optional<TensorCertificate> q;
  Verdict verdict = Verdict::unknown;  // the verdict of the more demanding tensor
};

struct Certificate {
  KvFormat format = KvFormat::e4m3fn;
  std::vector<int64_t> skipped;  // KvScales::skipped
  std::vector<LayerCertificate> layers;
  TextEvidence text;

  // Layer numbers in ascending order.
  std::vector<size_t> layers_with(Verdict verdict) const;
  std::vector<size_t> layers_that_do_not_hold() const;
};

// Returns "1.0 is safe", "needs its scale", "keep in 16 bit", "not known" or "no cache".
std::string verdict_name(Verdict verdict);

// Makes the certificate for a format. With too little text no layer is safe. Otherwise a layer is
// safe at 1.0 only if the room above its amax holds kDoublingsAhead more doublings of the text.
// Each is assumed to grow amax like the last one.
// REQUIRES an E4M3 format or NVFP4; scales for the other E4M3 format are converted.
Certificate certify(const KvScales& scales, KvFormat format);

// The formats that the scales can serve, their own format first: E4M3FN and FNUZ, or NVFP4 alone.
std::vector<KvFormat> formats_served(const KvScales& scales);
// Certifies for the first of formats_served().
Certificate certify(const KvScales& scales);

}  // namespace fp8kv
